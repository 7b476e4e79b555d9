package dev.strandline.conformance;

import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Runs test classes, one result a line as soon as it is known:
 * {@code java TAB id TAB passed|failed|internals|skipped TAB seconds TAB first line of the failure TAB notes}.
 *
 * <p>{@code Lane OUT LIST|- CLASS...}: results go to {@code OUT/CLASS.tsv}, brokers' logs of failures to {@code OUT/logs}.
 */
public final class Lane {
    private static Path out;
    private static Path results;
    private static Set<String> list;

    private Lane() { }

    public static void main(String[] args) throws Exception {
        out = Path.of(args[0]).toAbsolutePath();
        if (!args[1].equals("-")) list = new HashSet<>(Files.readAllLines(Path.of(args[1])));
        for (String name : Arrays.asList(args).subList(2, args.length)) run(name);
        // A client that a failed test has left behind must not keep this process.
        System.exit(0);
    }

    private static void run(String className) throws Exception {
        results = out.resolve(className + ".tsv");
        Files.deleteIfExists(results);
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request().selectors(selectors(className))
            .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true")
            .configurationParameter("junit.jupiter.execution.timeout.lifecycle.method.default", TestLimit.SECONDS + " s")
            .build();
        Launcher launcher = LauncherFactory.create();
        launcher.execute(request, new Listener());
    }

    private static List<DiscoverySelector> selectors(String className) throws ClassNotFoundException {
        Class<?> type = Class.forName(className);
        if (list == null) return List.of(DiscoverySelectors.selectClass(type));
        List<DiscoverySelector> found = new ArrayList<>();
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            for (var method : at.getDeclaredMethods()) {
                String id = className + "#" + method.getName();
                boolean named = list.stream().anyMatch(wanted -> wanted.equals(id) || wanted.startsWith(id + "["));
                if (named && !method.isSynthetic()) found.add(DiscoverySelectors.selectMethod(type, method));
            }
        }
        return found;
    }

    static boolean wanted(String id) {
        return list == null || list.contains(id);
    }

    static Path work() {
        return out.resolve("work");
    }

    static void started(String id) {
        write(out.resolve(id.substring(0, id.indexOf('#')) + ".running"), id + "\n", false);
    }

    private static void write(Path file, String text, boolean append) {
        try {
            Files.writeString(file, text, StandardOpenOption.CREATE, StandardOpenOption.WRITE,
                append ? StandardOpenOption.APPEND : StandardOpenOption.TRUNCATE_EXISTING);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static final class Listener implements TestExecutionListener {
        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            if (reason.startsWith(CurrentTest.SILENT)) return;
            record(test.getDisplayName(), "skipped", 0, "", reason);
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            Throwable failure = result.getThrowable().orElse(null);
            if (!test.isTest()) {
                if (failure != null) record(test.getDisplayName(), "failed", 0, "container", describe(failure));
                return;
            }
            String status = switch (result.getStatus()) {
                case SUCCESSFUL -> "passed";
                case ABORTED -> "skipped";
                case FAILED -> CurrentTest.touchedInternals() ? "internals" : "failed";
            };
            record(CurrentTest.id(), status, CurrentTest.seconds(), CurrentTest.notes(), failure == null ? "" : describe(failure));
            if (failure != null && status.equals("failed")) {
                System.err.println("FAILED " + CurrentTest.id());
                failure.printStackTrace();
            }
            tidy(status.equals("failed"));
        }
    }

    private static void record(String id, String status, double seconds, String notes, String detail) {
        String line = String.join("\t", "java", id, status, String.format(Locale.ROOT, "%.1f", seconds), detail, notes);
        write(results, line.replaceAll("[\r\n]+", " ") + "\n", true);
        System.out.println(status + " " + id);
    }

    private static String describe(Throwable failure) {
        Throwable root = failure;
        while (root.getCause() != null && root.getCause() != root) root = root.getCause();
        String text = head(failure);
        if (root != failure) text += " <- " + head(root);
        return text.replace('\t', ' ');
    }

    private static String head(Throwable failure) {
        String message = failure.getMessage() == null ? "" : failure.getMessage().strip().lines().findFirst().orElse("");
        String text = failure.getClass().getSimpleName() + ": " + message;
        return text.length() > 240 ? text.substring(0, 240) : text;
    }

    /** Removes the broker's folder; after a failure its log is kept. */
    private static void tidy(boolean failed) {
        Path dir = CurrentTest.dir();
        if (dir == null) return;
        try {
            if (failed && Files.exists(dir.resolve("broker.log"))) {
                Files.createDirectories(out.resolve("logs"));
                String name = CurrentTest.id().replace("org.apache.kafka.", "") + ".log";
                Files.copy(dir.resolve("broker.log"), out.resolve("logs").resolve(name), StandardCopyOption.REPLACE_EXISTING);
            }
            if ("1".equals(System.getenv("CONFORMANCE_KEEP"))) return;
            try (Stream<Path> files = Files.walk(dir)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) Files.deleteIfExists(file);
            }
        } catch (IOException | UncheckedIOException e) {
            System.err.println("can't tidy " + dir + ": " + e);
        }
    }
}
