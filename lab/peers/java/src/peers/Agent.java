package peers;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** Entry point of the agents in Java: role, signals, errors. */
public final class Agent {
    /** What differs between two systems. */
    public interface System {
        String name();

        String version() throws Exception;

        String transports();

        Options.Notify fastest(Options options);

        Link connect(Options options) throws Exception;

        /** Serves until the process ends; calls `ready` when connections are accepted. */
        void serve(Options options, Runnable ready) throws Exception;
    }

    private static final long STOP_LIMIT_MS = 2000;
    private static volatile boolean stopping;
    private static volatile Path temporary;
    private static final CountDownLatch ENDED = new CountDownLatch(1);

    private Agent() {}

    /** Whether the agent was told to end. */
    static boolean isStopping() {
        return stopping;
    }

    /** Plays the role of the first argument; does not return. */
    public static void run(System system, String[] arguments) {
        Lines.claim();
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(main)));
        int code = 0;
        try {
            play(system, arguments);
        } catch (Throwable failure) {
            if (!stopping) {
                code = 1;
                Lines.say("error", "what", describe(failure));
            }
        }
        ENDED.countDown();
        if (stopping) {
            return;
        }
        Runtime.getRuntime().halt(code);
    }

    /** A directory for what a broker keeps; it is removed at the end. */
    public static Path temporaryDirectory(String name) throws IOException {
        temporary = Files.createTempDirectory(name);
        return temporary;
    }

    private static void removeTemporary() {
        if (temporary == null) {
            return;
        }
        try (Stream<Path> paths = Files.walk(temporary)) {
            paths.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        } catch (IOException | UncheckedIOException e) {
            // A file that the broker removed meanwhile.
        }
    }

    /** The JVM runs this at SIGTERM. Halting replaces its exit code of 143. */
    private static void stop(Thread main) {
        stopping = true;
        main.interrupt();
        try {
            ENDED.await(STOP_LIMIT_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException ended) {
            // The process ends all the same.
        }
        removeTemporary();
        Runtime.getRuntime().halt(0);
    }

    private static String describe(Throwable failure) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = failure; cause != null && text.length() < 400; cause = cause.getCause()) {
            if (!(cause instanceof IllegalArgumentException)) {
                text.append(cause.getClass().getSimpleName()).append(": ");
            }
            text.append(cause.getMessage()).append(cause.getCause() == null ? "" : "; ");
        }
        return text.toString();
    }

    private static void play(System system, String[] arguments) throws Exception {
        String role = arguments.length == 0 ? "" : arguments[0];
        Options options = new Options(Arrays.copyOfRange(arguments, Math.min(1, arguments.length), arguments.length));
        if (!Arrays.asList(system.transports().split(",")).contains(options.transport)) {
            throw options.wrong("transport", "expected one of " + system.transports());
        }
        if (role.equals("info")) {
            Lines.say("info", "peer", system.name(), "version", system.version(), "transports", system.transports(),
                "notifies", "listener,waitset,poll", "types", "octets,complex", "fixed_size", false);
            return;
        }
        if (!Arrays.asList("ping", "pong", "pub", "sub", "idle", "disc", "broker").contains(role)) {
            throw new IllegalArgumentException(
                "role " + role + ": expected one of info, ping, pong, pub, sub, idle, disc, broker");
        }
        if (options.broker == null) {
            throw options.wrong("broker", "expected ADDRESS:PORT of the broker");
        }
        if (role.equals("broker")) {
            system.serve(options, () -> Lines.say("ready"));
        } else {
            new Roles(system, options, role).play();
        }
    }
}
