import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one JVM: each start would cost a second.
 *
 * A line of standard input is a command, {"main": class, "words": [...], "stdin": text}; a line of
 * standard output is what it did, {"code": number, "out": text, "err": text}. A tool that ends its
 * process by Kafka's own Exit ends only its command here; shutdown hooks run when it has ended.
 */
public final class ToolServer {
    /** Thrown in place of the end of the process. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1L;

        Ended(int code) {
            super("exit code " + code, null, false, false);
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();
    /** The code that the running command ended with. */
    private static Integer code;

    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = System.out;
        mute();
        Exit.setExitProcedure((status, message) -> end(status));
        Exit.setHaltProcedure((status, message) -> end(status));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line))));
            answers.flush();
        }
    }

    /** Ends the command. A tool may catch what is thrown and go on: that no longer counts. */
    private static void end(int status) {
        if (code == null) {
            code = status;
            mute();
        }
        throw new Ended(status);
    }

    private static void mute() {
        System.setOut(new PrintStream(PrintStream.nullOutputStream()));
        System.setErr(new PrintStream(PrintStream.nullOutputStream()));
    }

    private static void unmute() {
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
    }

    private static ObjectNode run(JsonNode command) throws Exception {
        String[] words = JSON.convertValue(command.get("words"), String[].class);
        code = null;
        HOOKS.clear();
        OUT.reset();
        ERR.reset();
        System.setIn(new ByteArrayInputStream(command.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        Method main = Class.forName(command.get("main").asText()).getMethod("main", String[].class);
        finish(() -> main.invoke(null, (Object) words));
        for (Runnable hook : new ArrayList<>(HOOKS)) {
            finish(hook::run);
        }
        // Threads that a tool leaves behind speak to nobody.
        mute();
        ObjectNode answer = JSON.createObjectNode();
        answer.put("code", code == null ? 0 : code);
        answer.put("out", OUT.toString(StandardCharsets.UTF_8));
        answer.put("err", ERR.toString(StandardCharsets.UTF_8));
        return answer;
    }

    private interface Part {
        void run() throws Exception;
    }

    /** Runs a part of a command to its end, as a JVM would: what is thrown goes to standard error. */
    private static void finish(Part part) {
        unmute();
        try {
            part.run();
        } catch (Throwable thrown) {
            Throwable cause = thrown instanceof InvocationTargetException ? thrown.getCause() : thrown;
            if (!(cause instanceof Ended)) {
                System.err.println("Exception in thread \"main\" " + cause);
                code = code == null ? 1 : code;
            }
        }
    }
}
