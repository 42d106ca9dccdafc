package peers;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * CPU time and context switches of this process, from /proc/self/task. Java has no getrusage, and the times of
 * /proc/self/stat have steps of 10 ms. A thread that ended between two readings does not count.
 */
public final class Usage {
    private static final int NS = 0;
    private static final int VOLUNTARY = 1;
    private static final int INVOLUNTARY = 2;

    /** By thread: ns of CPU time, voluntary and involuntary context switches. */
    private final Map<String, long[]> threads = new HashMap<>();

    /** The usage until now. */
    public static Usage now() {
        Usage usage = new Usage();
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                try {
                    String schedule = Files.readString(task.resolve("schedstat"));
                    List<String> status = Files.readAllLines(task.resolve("status"));
                    usage.threads.put(task.getFileName().toString(), new long[] {
                        Long.parseLong(schedule.substring(0, schedule.indexOf(' '))),
                        field(status, "voluntary_ctxt_switches:"), field(status, "nonvoluntary_ctxt_switches:"),
                    });
                } catch (IOException ended) {
                    // The thread ended since the directory was read.
                }
            }
        } catch (IOException e) {
            throw new IllegalStateException("cannot read /proc/self/task: " + e.getMessage(), e);
        }
        return usage;
    }

    private double since(Usage start, int column) {
        double sum = 0;
        for (Map.Entry<String, long[]> thread : threads.entrySet()) {
            long[] before = start.threads.get(thread.getKey());
            sum += thread.getValue()[column] - (before == null ? 0 : before[column]);
        }
        return sum;
    }

    /** Seconds of CPU time since then. */
    public double seconds(Usage start) {
        return since(start, NS) * 1e-9;
    }

    public long voluntary(Usage start) {
        return (long) since(start, VOLUNTARY);
    }

    public long involuntary(Usage start) {
        return (long) since(start, INVOLUNTARY);
    }

    /** KiB of `VmRSS` or `VmHWM` of this process. */
    public static long memory(String name) {
        return field(lines("/proc/self/status"), name + ":");
    }

    /** KiB that no other process shares. */
    public static long privateMemory() {
        List<String> rollup = lines("/proc/self/smaps_rollup");
        return field(rollup, "Private_Clean:") + field(rollup, "Private_Dirty:");
    }

    private static List<String> lines(String path) {
        try {
            return Files.readAllLines(Path.of(path));
        } catch (IOException e) {
            throw new IllegalStateException("cannot read " + path + ": " + e.getMessage(), e);
        }
    }

    private static long field(List<String> lines, String name) {
        for (String line : lines) {
            if (line.startsWith(name)) {
                return Long.parseLong(line.substring(name.length()).replace("kB", "").trim());
            }
        }
        return 0;
    }
}
