package peers;

/** What an agent asks of a system: at most one writer and one reader, on topics by name. */
public interface Link extends AutoCloseable {
    /** Takes samples on a thread of the system. */
    interface Listener {
        void onSample(Sample sample) throws Exception;
    }

    /**
     * Makes a writer and a reader; null: none. Samples go to the listener if there is one, else they wait for
     * {@link #read}.
     */
    void open(String writes, String reads, Listener listener) throws Exception;

    void write(Sample sample) throws Exception;

    /** The next sample, or null after that many ms. */
    Sample read(long waitMs) throws Exception;

    /** Waits until the topic that is written has that many readers. False: not within that many ms. */
    boolean awaitReaders(int readers, long waitMs) throws Exception;

    @Override
    void close();
}
