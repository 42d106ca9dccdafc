package peers;

import java.util.BitSet;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** Round trips: writes `Ping` and times the `Pong` that comes back. */
final class Ping {
    private static final long PAUSE_NS = 300_000_000;
    private static final long PONG_TIMEOUT_NS = 1_000_000_000;
    private static final int LOST_MAX = 20;

    private final Link link;
    private final Options options;
    private final boolean listens;
    private final Semaphore finished = new Semaphore(0);

    // State of the size that runs, guarded by this.
    private Sample sample;
    private Times times;
    private BitSet seen;
    /** Sequence number of the last ping. It runs on from size to size: a late pong of another size is none. */
    private long sequence;
    private long sentNs;
    private long first;
    private long last;
    private Usage usage;
    private long usageNs;
    private int lost;
    private boolean done = true;
    private Exception failure;
    /** Planned time of the first ping of an open loop. */
    private long firstNs;

    Ping(Link link, Options options, boolean listens) {
        this.link = link;
        this.options = options;
        this.listens = listens;
    }

    void run() throws Exception {
        link.open(Roles.TOPIC_PING, Roles.TOPIC_PONG, listens ? this::onPong : null);
        Lines.say("ready");
        Roles.awaitReaders(link, 1);
        Roles.sleepUntil(System.nanoTime() + PAUSE_NS);
        for (int size : options.sizes) {
            if (Agent.isStopping()) {
                return;
            }
            measure(size);
        }
        Lines.say("done");
    }

    private void measure(int size) throws Exception {
        synchronized (this) {
            sample = Sample.filled(size, options.complex);
            times = new Times((int) options.count);
            seen = new BitSet();
            lost = 0;
            first = sequence + 1;
            last = sequence + options.warmup + options.count;
            done = false;
            startUsage();
        }
        if (options.periodNs > 0) {
            openLoop();
        } else if (listens) {
            closedLoopListening();
        } else {
            closedLoop();
        }
        double wall = (System.nanoTime() - usageNs) * 1e-9;
        Usage end = Usage.now();
        synchronized (this) {
            done = true;
            if (failure != null) {
                throw failure;
            }
            if (options.periodNs > 0) {
                lost = (int) Math.max(0, sequence - first + 1 - options.warmup - times.count());
            }
            sequence = last;
            times.append(options.out);
            Lines.say("result", "role", "ping", "size", size, "got", times.count(), "lost", lost, "cpu_s",
                end.seconds(usage), "wall_s", wall, "nvcsw", end.voluntary(usage), "nivcsw", end.involuntary(usage),
                "listening", listens ? 1 : 0);
        }
    }

    private void startUsage() {
        usage = Usage.now();
        usageNs = System.nanoTime();
    }

    /** Makes the next ping and writes it. The lock is free while it writes, so that pongs are timed at once. */
    private void send(long plannedNs) throws Exception {
        synchronized (this) {
            sequence++;
            if (options.periodNs == 0 && sequence == first + options.warmup) {
                startUsage();
            }
            sentNs = plannedNs == 0 ? System.nanoTime() : plannedNs;
            sample.mark(sequence, sentNs);
        }
        link.write(sample);
    }

    /** Takes a pong. True if it answers the ping that is out, or in an open loop any ping for the first time. */
    private boolean accept(Sample pong) {
        long now = System.nanoTime();
        pong.touch(options.touch);
        return accept(pong, now);
    }

    private synchronized boolean accept(Sample pong, long now) {
        long number = pong.sequence();
        if (!pong.isTimed()) {
            // 32 bits of the sequence number: those above are those of the latest ping.
            number = sequence - Integer.toUnsignedLong((int) (sequence - number));
        }
        if (done || number < first || number > sequence || seen.get((int) (number - first))) {
            return false;
        }
        if (options.periodNs == 0 && number != sequence) {
            return false;
        }
        seen.set((int) (number - first));
        if (number >= first + options.warmup) {
            times.add(now - (options.periodNs > 0 ? planned(number) : sentNs));
        }
        done = number >= last;
        return true;
    }

    private long planned(long number) {
        return firstNs + (number - first) * options.periodNs;
    }

    /** The ping that is out is lost. True if another one is to be sent. */
    private synchronized boolean giveUp() {
        lost++;
        done = lost >= LOST_MAX || sequence >= last;
        return !done;
    }

    private synchronized boolean isDone() {
        return done || failure != null || Agent.isStopping();
    }

    private synchronized boolean isOverdue() {
        return System.nanoTime() >= sentNs + PONG_TIMEOUT_NS;
    }

    private void onPong(Sample pong) {
        try {
            if (accept(pong) && !isDone() && options.periodNs == 0) {
                send(0);
            }
        } catch (Exception e) {
            synchronized (this) {
                failure = e;
            }
        }
        if (isDone()) {
            finished.release();
        }
    }

    private void closedLoopListening() throws Exception {
        finished.drainPermits();
        send(0);
        while (!isDone()) {
            finished.tryAcquire(Roles.STEP_MS, TimeUnit.MILLISECONDS);
            if (!isDone() && isOverdue() && giveUp()) {
                send(0);
            }
        }
    }

    private void closedLoop() throws Exception {
        while (!isDone()) {
            send(0);
            while (!Agent.isStopping()) {
                Sample pong = link.read(Roles.STEP_MS);
                if (pong != null && accept(pong)) {
                    break;
                }
                if (isOverdue()) {
                    giveUp();
                    break;
                }
            }
        }
    }

    private void openLoop() throws Exception {
        firstNs = System.nanoTime() + options.periodNs;
        Thread reader = listens ? null : new Thread(this::readUntilDone);
        if (reader != null) {
            reader.start();
        }
        for (long number = first; number <= last && !isDone(); number++) {
            Roles.sleepUntil(planned(number));
            send(planned(number));
        }
        while (!isDone() && !isOverdue()) {
            Roles.sleepUntil(System.nanoTime() + 1_000_000);
        }
        synchronized (this) {
            done = true;
        }
        if (reader != null) {
            reader.join();
        }
    }

    private void readUntilDone() {
        try {
            while (!isDone()) {
                Sample pong = link.read(Roles.STEP_MS);
                if (pong != null) {
                    accept(pong);
                }
            }
        } catch (Exception e) {
            synchronized (this) {
                failure = e;
            }
        }
    }
}
