package peers;

import java.io.IOException;

/** What a subscriber counts of a stream. */
final class Stream {
    private static final long SILENCE_NS = 3_000_000_000L;

    private final Options options;
    private final long warmNs;
    private final long windowNs;
    private final Times times;
    private long firstNs;
    private long openedNs;
    private long lastNs;
    private Usage opened;
    private Usage closed;
    private boolean ended;
    private boolean reported;
    private long arrivals;
    private long bytes;
    private long total;
    private long firstSequence;
    private long lastSequence;

    Stream(Options options) {
        this.options = options;
        warmNs = (long) (options.warmSeconds * 1e9);
        windowNs = (long) (options.seconds * 1e9);
        times = new Times(options.out == null ? 0 : 1 << 16);
    }

    synchronized void onSample(Sample sample) {
        long now = System.nanoTime();
        if (!sample.isTimed()) {
            return;
        }
        if (sample.sequence() == Sample.END) {
            ended = true;
            return;
        }
        sample.touch(options.touch);
        if (total++ == 0) {
            firstNs = now;
        }
        if (closed != null || now - firstNs < warmNs) {
            return;
        }
        if (opened == null) {
            opened = Usage.now();
            openedNs = now;
            firstSequence = sample.sequence();
            lastSequence = firstSequence;
        }
        if (now - openedNs >= windowNs) {
            closed = Usage.now();
            return;
        }
        arrivals++;
        bytes += sample.octets.length;
        lastNs = now;
        lastSequence = Math.max(lastSequence, sample.sequence());
        if (options.out != null) {
            times.add(now - sample.sentNs());
        }
    }

    /** Prints the result once the count is over. */
    synchronized void reportOnce(long now) throws IOException {
        boolean silent = opened != null && now - Math.max(lastNs, openedNs) > SILENCE_NS;
        if (!reported && (closed != null || ended || silent)) {
            report();
        }
    }

    /** Prints what was counted until the agent was told to end. */
    synchronized void reportAtStop() throws IOException {
        if (!reported && total > 0) {
            report();
        }
    }

    private void report() throws IOException {
        reported = true;
        if (closed == null) {
            closed = Usage.now();
        }
        double wall = opened == null ? 0 : Math.max(0, lastNs - openedNs) * 1e-9;
        double cpu = opened == null ? 0 : closed.seconds(opened);
        times.append(options.out);
        Lines.say("result", "role", "sub", "id", options.id, "n", arrivals, "bytes", bytes, "wall_s", wall, "cpu_s",
            cpu, "span", lastSequence - firstSequence, "total", total);
    }
}
