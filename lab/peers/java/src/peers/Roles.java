package peers;

import java.util.concurrent.locks.LockSupport;

/** The roles of the contract but `ping`: see {@link Ping}. */
final class Roles {
    static final String TOPIC_PING = "Ping";
    static final String TOPIC_PONG = "Pong";
    private static final String TOPIC_DATA = "Data";
    /** A stop is noticed as late as this. */
    static final long STEP_MS = 100;
    private static final long MATCH_LIMIT_MS = 30_000;
    private static final long STREAM_PAUSE_NS = 500_000_000;
    private static final long STREAM_TAIL_NS = 300_000_000;
    private static final long END_PAUSE_NS = 50_000_000;
    private static final int END_MARKS = 3;

    private final long mainNs = System.nanoTime();
    private final Agent.System system;
    private final Options options;
    private final String role;
    private final boolean listens;

    Roles(Agent.System system, Options options, String role) {
        this.system = system;
        this.options = options;
        this.role = role;
        Options.Notify notify = options.notify == null ? system.fastest(options) : options.notify;
        listens = notify == Options.Notify.LISTENER;
    }

    void play() throws Exception {
        check();
        long bareKib = Usage.memory("VmRSS");
        try (Link link = system.connect(options)) {
            switch (role) {
                case "ping" -> new Ping(link, options, listens).run();
                case "pong" -> pong(link);
                case "sub" -> subscribe(link);
                case "pub" -> publish(link);
                default -> pair(link, bareKib);
            }
        }
    }

    private void check() {
        boolean streams = role.equals("pub") || role.equals("sub") || options.periodNs > 0;
        if (streams && options.complex) {
            throw options.wrong("type", "complex samples are for closed loops alone");
        }
        if (streams && !options.keepsAll) {
            throw options.wrong("hist", "a JMS topic keeps all samples; a depth is for closed loops alone");
        }
        for (int size : options.sizes) {
            if (streams && size < Sample.MARKS) {
                throw options.wrong("size", "sizes of 4 to 15 octets are for closed loops alone");
            }
        }
        if (options.id > 1 && (role.equals("idle") || role.equals("disc"))) {
            throw options.wrong("id", "expected 0 or 1");
        }
    }

    static void awaitReaders(Link link, int readers) throws Exception {
        if (!Agent.isStopping() && !link.awaitReaders(readers, MATCH_LIMIT_MS)) {
            throw new IllegalStateException("fewer than " + readers + " matched readers within 30 s");
        }
    }

    /** Sleeps until that time of the monotonic clock, or a stop. */
    static void sleepUntil(long ns) {
        for (long left = ns - System.nanoTime(); left > 0 && !Agent.isStopping(); left = ns - System.nanoTime()) {
            LockSupport.parkNanos(Math.min(left, STEP_MS * 1_000_000));
        }
    }

    private static void sleepUntilStop() {
        while (!Agent.isStopping()) {
            sleepUntil(System.nanoTime() + 1_000_000_000);
        }
    }

    private void pong(Link link) throws Exception {
        Link.Listener answer = sample -> {
            sample.touch(options.touch);
            link.write(options.acknowledges ? sample.acknowledgment() : sample);
        };
        link.open(TOPIC_PONG, TOPIC_PING, listens ? answer : null);
        Lines.say("ready");
        if (listens) {
            sleepUntilStop();
        }
        while (!Agent.isStopping()) {
            Sample sample = link.read(STEP_MS);
            if (sample != null) {
                answer.onSample(sample);
            }
        }
    }

    private void subscribe(Link link) throws Exception {
        Stream stream = new Stream(options);
        link.open(null, TOPIC_DATA, listens ? stream::onSample : null);
        Lines.say("ready");
        while (!Agent.isStopping()) {
            if (listens) {
                sleepUntil(System.nanoTime() + STEP_MS * 100_000);
            } else {
                Sample sample = link.read(STEP_MS);
                if (sample != null) {
                    stream.onSample(sample);
                }
            }
            stream.reportOnce(System.nanoTime());
        }
        stream.reportAtStop();
    }

    private void publish(Link link) throws Exception {
        link.open(TOPIC_DATA, null, null);
        Lines.say("ready");
        awaitReaders(link, options.readers);
        sleepUntil(System.nanoTime() + STREAM_PAUSE_NS);
        Sample sample = Sample.filled(options.sizes[0], false);
        long startNs = System.nanoTime();
        long openNs = startNs + (long) (options.warmSeconds * 1e9);
        long windowNs = (long) (options.seconds * 1e9);
        double periodNs = options.rate > 0 ? 1e9 / options.rate : 0;
        long written = 0;
        long writtenBefore = 0;
        long openedNs = 0;
        Usage opened = null;
        long closedNs = 0;
        while (!Agent.isStopping()) {
            if (periodNs > 0) {
                sleepUntil(startNs + (long) (written * periodNs));
            }
            long now = System.nanoTime();
            if (opened == null && now >= openNs) {
                opened = Usage.now();
                openedNs = System.nanoTime();
                writtenBefore = written;
            } else if (opened != null && closedNs == 0 && now - openedNs >= windowNs) {
                closedNs = now;
                Lines.say("result", "role", "pub", "n", written - writtenBefore, "wall_s", (now - openedNs) * 1e-9,
                    "cpu_s", Usage.now().seconds(opened), "fails", 0, "total", written);
            }
            if (closedNs > 0 && now - closedNs >= STREAM_TAIL_NS) {
                break;
            }
            sample.mark(++written, now);
            link.write(sample);
        }
        for (int i = 0; i < END_MARKS && !Agent.isStopping(); i++) {
            sample.mark(Sample.END, System.nanoTime());
            link.write(sample);
            sleepUntil(System.nanoTime() + END_PAUSE_NS);
        }
        Lines.say("done");
    }

    /** `idle` and `disc`. */
    private void pair(Link link, long bareKib) throws Exception {
        String writes = options.id == 0 ? TOPIC_PING : TOPIC_PONG;
        link.open(writes, options.id == 0 ? TOPIC_PONG : TOPIC_PING, listens ? sample -> { } : null);
        long initNs = System.nanoTime();
        Lines.say("ready");
        if (options.readers > 0) {
            awaitReaders(link, 1);
            double t0 = options.startedNs == 0 ? mainNs : options.startedNs;
            Lines.say("matched", "main_ms", (mainNs - t0) * 1e-6, "init_ms", (initNs - t0) * 1e-6, "match_ms",
                (System.nanoTime() - t0) * 1e-6);
        }
        if (role.equals("idle")) {
            sleepUntil(System.nanoTime() + (long) (options.warmSeconds * 1e9));
            Usage start = Usage.now();
            long startNs = System.nanoTime();
            LockSupport.parkNanos((long) (options.seconds * 1e9));
            double wall = (System.nanoTime() - startNs) * 1e-9;
            Usage end = Usage.now();
            Lines.say("result", "role", "idle", "cpu_s", end.seconds(start), "wall_s", wall, "nvcsw",
                end.voluntary(start), "nivcsw", end.involuntary(start), "bare_kib", bareKib, "resident_kib",
                Usage.memory("VmRSS"), "peak_kib", Usage.memory("VmHWM"), "private_kib", Usage.privateMemory());
        }
        sleepUntilStop();
    }
}
