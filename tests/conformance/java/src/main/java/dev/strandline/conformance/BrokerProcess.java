package dev.strandline.conformance;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** One broker outside: {@code $LAUNCH DIR PORT key=value ...}, stopped by SIGTERM or killed. */
final class BrokerProcess {
    static final String HOST = "127.0.0.1";
    private static final long START_LIMIT_MS = Long.getLong("conformance.start.limit.ms", 60_000);
    private static final long STOP_LIMIT_MS = 30_000;

    final Path dir;
    final int port;
    private final List<String> command = new ArrayList<>();
    private final String features;
    private volatile Process process;

    /** Those that may be running; they end with this JVM. */
    private static final Set<BrokerProcess> RUNNING = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> RUNNING.forEach(BrokerProcess::kill)));
    }

    BrokerProcess(Path dir, Map<String, String> properties, String features) {
        String launch = System.getenv("LAUNCH");
        if (launch == null || launch.isBlank()) throw new IllegalStateException("LAUNCH is not set");
        this.dir = dir;
        this.port = freePort();
        this.features = features;
        command.addAll(List.of(launch.trim().split("\\s+")));
        command.add(state(dir).toString());
        command.add(Integer.toString(port));
        properties.forEach((key, value) -> command.add(key + "=" + value));
    }

    /** The broker's own folder, so that the log beside it is not in the way. */
    private static Path state(Path dir) {
        try {
            return Files.createDirectories(dir.resolve("state"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Starts the process (also a second time, on the same folder and port) and waits until it accepts connections. */
    void start() {
        File log = dir.resolve("broker.log").toFile();
        try {
            ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectInput(new File("/dev/null")).redirectOutput(ProcessBuilder.Redirect.appendTo(log));
            builder.environment().put("CONFORMANCE_FEATURES", features);
            RUNNING.add(this);
            process = builder.start();
        } catch (IOException e) {
            throw new UncheckedIOException("can't run " + command.get(0), e);
        }
        long deadline = System.currentTimeMillis() + START_LIMIT_MS;
        while (!accepts()) {
            if (!process.isAlive()) throw new IllegalStateException("broker ended with " + process.exitValue() + " at start: " + lastLogLine());
            if (System.currentTimeMillis() > deadline) {
                kill();
                throw new IllegalStateException("broker did not listen on port " + port + " within " + START_LIMIT_MS + " ms");
            }
            sleep(10);
        }
    }

    boolean alive() {
        return process != null && process.isAlive();
    }

    /** Waits until the process is gone. */
    void terminate() {
        if (!alive()) return;
        process.destroy();
        try {
            if (process.waitFor(STOP_LIMIT_MS, TimeUnit.MILLISECONDS)) return;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        CurrentTest.note("ignored-SIGTERM");
        kill();
    }

    /** At the end of a test nothing is left to be saved, so by default the process is not asked. */
    void end() {
        if ("term".equals(System.getenv("CONFORMANCE_STOP"))) terminate();
        kill();
    }

    void kill() {
        if (process == null) return;
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        boolean interrupted = Thread.interrupted();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            interrupted = true;
        }
        if (!process.isAlive()) RUNNING.remove(this);
        if (interrupted) Thread.currentThread().interrupt();
    }

    private boolean accepts() {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(HOST, port), 1000);
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    /** Whether a part of the broker came down, even if no client has noticed. */
    boolean panicked() {
        try (Stream<String> lines = Files.lines(dir.resolve("broker.log"), StandardCharsets.ISO_8859_1)) {
            return lines.anyMatch(line -> line.contains("panicked at"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private String lastLogLine() {
        try {
            List<String> lines = Files.readAllLines(dir.resolve("broker.log"));
            return lines.isEmpty() ? "(no output)" : lines.get(lines.size() - 1);
        } catch (IOException e) {
            return "(no log)";
        }
    }

    /** A port which is free, and the next one too; below the range from which outgoing connections are served. */
    private static int freePort() {
        for (int i = 0; i < 1000; i++) {
            int port = ThreadLocalRandom.current().nextInt(12_000, 32_000);
            if (isFree(port) && isFree(port + 1)) return port;
        }
        throw new IllegalStateException("no free port");
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getByName(HOST))) {
            return socket.isBound();
        } catch (IOException e) {
            return false;
        }
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new org.apache.kafka.common.errors.InterruptException(e);
        }
    }
}
