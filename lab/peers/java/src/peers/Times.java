package peers;

import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Times in ns that a file gets at the end of a measurement. */
final class Times {
    private static final int CHUNK = 8192;

    private long[] ns;
    private int count;

    Times(int capacity) {
        ns = new long[Math.max(capacity, 16)];
    }

    void add(long time) {
        if (count == ns.length) {
            ns = Arrays.copyOf(ns, count * 2);
        }
        ns[count++] = Math.max(0, time);
    }

    int count() {
        return count;
    }

    void append(String path) throws IOException {
        if (path == null) {
            return;
        }
        try (FileOutputStream file = new FileOutputStream(path, true)) {
            for (int at = 0; at < count; at += CHUNK) {
                ByteBuffer bytes = ByteBuffer.allocate(8 * CHUNK).order(ByteOrder.LITTLE_ENDIAN);
                for (int i = at; i < Math.min(count, at + CHUNK); i++) {
                    bytes.putLong(ns[i]);
                }
                file.write(bytes.array(), 0, bytes.position());
            }
        }
    }
}
