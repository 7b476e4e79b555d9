"""A TCP proxy on loopback that cuts connections in the middle, as bad networks do."""

import random
import socket
import struct
import threading


class CuttingProxy:
    """Passes bytes on to `target`; each connection is reset after a random number of reply bytes.

    What the broker did and the client never heard of is the interesting part: the request arrived, its
    answer did not. The seed makes a run repeatable as far as the client's own timing allows.
    """

    def __init__(self, target: int, seed: int, reply_bytes: tuple[int, int]):
        self.target = target
        self.reply_bytes = reply_bytes
        self.random = random.Random(seed)
        self.cutting = True
        self.cuts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            try:
                broker = socket.create_connection(("127.0.0.1", self.target), timeout=10)
            except OSError:
                reset(client)
                continue
            budget = self.random.randint(*self.reply_bytes)
            threading.Thread(target=self.serve, args=(client, broker, budget), daemon=True).start()

    def serve(self, client: socket.socket, broker: socket.socket, budget: int) -> None:
        """Both directions of one connection; only when both have ended are the sockets closed."""
        requests = threading.Thread(target=self.pass_on, args=(client, broker, None), daemon=True)
        requests.start()
        self.pass_on(broker, client, budget)
        requests.join()
        reset(client)
        reset(broker)

    def pass_on(self, source: socket.socket, sink: socket.socket, budget: int | None) -> None:
        try:
            source.settimeout(None)
            while piece := source.recv(65536):
                if budget is not None and self.cutting:
                    if budget < len(piece):
                        self.cuts += 1
                        sink.sendall(piece[:budget])
                        break
                    budget -= len(piece)
                sink.sendall(piece)
        except OSError:
            pass  # the other half has cut it
        finally:
            shut(source)
            shut(sink)

    def close(self) -> None:
        self.listener.close()


class Switch:
    """Passes bytes on to `target`, which may change: connections end then, and new ones go elsewhere.

    While it `holds` nothing gets through, and nobody is told: a network that has lost its way."""

    def __init__(self, target: int):
        self.target = target
        self.flows = threading.Event()
        self.flows.set()
        self.accepted = 0
        self.open: list[socket.socket] = []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            self.accepted += 1
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        self.flows.wait()
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
        except OSError:
            reset(client)
            return
        with self.lock:
            self.open += [client, server]
        answers = threading.Thread(target=self.pass_on, args=(server, client), daemon=True)
        answers.start()
        self.pass_on(client, server)
        answers.join()
        with self.lock:
            self.open = [one for one in self.open if one not in (client, server)]
        reset(client)
        reset(server)

    def pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            source.settimeout(None)
            while piece := source.recv(65536):
                self.flows.wait()
                sink.sendall(piece)
        except OSError:
            pass  # the other half has ended it
        finally:
            shut(source)
            shut(sink)

    def cut(self) -> None:
        """Ends all connections."""
        with self.lock:
            for connection in self.open:
                shut(connection)

    def lead_to(self, target: int) -> None:
        self.target = target
        self.cut()

    def close(self) -> None:
        self.flows.set()
        self.cut()
        self.listener.close()


def shut(connection: socket.socket) -> None:
    """Ends both directions, and whatever call of another thread waits for them."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # ended already


def reset(connection: socket.socket) -> None:
    """Closes without waiting for what was not delivered."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
