package peers;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** A sample of the contract: octets, or a sequence of groups of named numbers. */
public final class Sample {
    /** Sequence number that ends a stream. */
    public static final long END = -1;
    /** Octets of sequence number and time. */
    public static final int MARKS = 16;

    private static final VarHandle LONG =
        MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final int CACHE_LINE = 64;
    private static final int ITEM = 32;
    private static final int ITEMS_PER_GROUP = 8;
    private static final int NAME = 23;

    /** The complex type: names and numbers of the items of one group. */
    public static final class Group {
        public final String[] names;
        public final int[] numbers;

        public Group(int items) {
            names = new String[items];
            numbers = new int[items];
        }
    }

    /** Keeps the reads of {@link #touch} from being optimized away. */
    public static volatile int touched;

    /** Null in a complex sample. */
    public final byte[] octets;
    /** Null in a sample of octets. */
    public final Group[] groups;

    public Sample(byte[] octets) {
        this.octets = octets;
        this.groups = null;
    }

    public Sample(Group[] groups) {
        this.octets = null;
        this.groups = groups;
    }

    /** A sample of that size whose marks are zero. */
    public static Sample filled(int size, boolean complex) {
        return complex ? new Sample(groups(size)) : new Sample(octets(size));
    }

    private static byte[] octets(int size) {
        byte[] octets = new byte[size];
        int state = 0x2545_f491;
        for (int i = 0; i < size; i++) {
            state ^= state << 13;
            state ^= state >>> 17;
            state ^= state << 5;
            octets[i] = i % 2 == 1 ? (byte) state : (byte) 0xa5;
        }
        Arrays.fill(octets, 0, Math.min(size, MARKS), (byte) 0);
        return octets;
    }

    private static Group[] groups(int size) {
        int items = Math.max(1, size / ITEM);
        int length = size < ITEM ? Math.max(0, size - 9) : NAME;
        Group[] groups = new Group[(items + ITEMS_PER_GROUP - 1) / ITEMS_PER_GROUP];
        int state = 0x2545_f491;
        for (int g = 0; g < groups.length; g++) {
            groups[g] = new Group(Math.min(ITEMS_PER_GROUP, items - g * ITEMS_PER_GROUP));
            for (int i = 0; i < groups[g].names.length; i++) {
                char[] name = new char[length];
                for (int c = 0; c < length; c++) {
                    state ^= state << 13;
                    state ^= state >>> 17;
                    state ^= state << 5;
                    name[c] = (char) ('a' + Integer.remainderUnsigned(state, 26));
                }
                groups[g].names[i] = new String(name);
                groups[g].numbers[i] = g * ITEMS_PER_GROUP + i;
            }
        }
        return groups;
    }

    /** Sets sequence number and time of the send. */
    public void mark(long sequence, long sentNs) {
        if (groups != null) {
            groups[0].numbers[0] = (int) sequence;
        } else if (octets.length >= MARKS) {
            LONG.set(octets, 0, sequence);
            LONG.set(octets, 8, sentNs);
        } else {
            INT.set(octets, 0, (int) sequence);
        }
    }

    /** Whether the sequence number has 64 bits and a time follows. */
    public boolean isTimed() {
        return groups == null && octets.length >= MARKS;
    }

    /** Sequence number, or its lower 32 bits in a short or complex sample. */
    public long sequence() {
        if (isTimed()) {
            return (long) LONG.get(octets, 0);
        }
        return Integer.toUnsignedLong(groups != null ? groups[0].numbers[0] : (int) INT.get(octets, 0));
    }

    /** Time of the send, 0 in a short or complex sample. */
    public long sentNs() {
        return isTimed() ? (long) LONG.get(octets, 8) : 0;
    }

    /** The first four octets of the payload; of a complex sample the number of its first item, without a name. */
    public Sample acknowledgment() {
        if (groups == null) {
            return new Sample(Arrays.copyOf(octets, 4));
        }
        Group item = new Group(1);
        item.names[0] = "";
        item.numbers[0] = groups[0].numbers[0];
        return new Sample(new Group[] {item});
    }

    /** Reads one octet of each cache line, or all; see the key `touch`. */
    public void touch(int how) {
        if (how == 0 || octets == null) {
            return;
        }
        int sum = 0;
        for (int i = 0; i < octets.length; i += how == 1 ? CACHE_LINE : 1) {
            sum += octets[i];
        }
        touched = sum;
    }
}
