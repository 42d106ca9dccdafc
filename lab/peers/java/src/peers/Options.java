package peers;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** Keys of the agent contract (docs/reference/bench-agents.md). Unknown keys are ignored. */
public final class Options {
    /** How a reader gets its samples. */
    public enum Notify { LISTENER, WAITSET, POLL }

    private static final int SIZE_MAX = 64 << 20;

    public final String transport;
    public final boolean reliable;
    public final boolean keepsAll;
    /** Null: the fastest of the system. */
    public final Notify notify;
    public final boolean complex;
    public final int[] sizes;
    public final boolean acknowledges;
    public final long warmup;
    public final long count;
    public final long periodNs;
    public final double warmSeconds;
    public final double seconds;
    public final double rate;
    public final int readers;
    public final int id;
    /** 0: none, 1: one octet of each cache line, 2: each octet. */
    public final int touch;
    public final int domain;
    public final String broker;
    public final long startedNs;
    public final String out;

    private final Map<String, String> values = new HashMap<>();

    public Options(String[] arguments) {
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            if (equals > 0) {
                values.put(argument.substring(0, equals), argument.substring(equals + 1));
            }
        }
        if (values.containsKey("security")) {
            throw new IllegalArgumentException("security: there is no DDS Security here");
        }
        transport = values.getOrDefault("transport", "default");
        reliable = choice("rel", "reliable", "besteffort") == 0;
        keepsAll = values.getOrDefault("hist", "all").equals("all") || number("hist", 1, 1, 1 << 30) < 1;
        int notification = choice("notify", "auto", "listener", "waitset", "poll");
        notify = notification == 0 ? null : Notify.values()[notification - 1];
        complex = choice("type", "octets", "complex") == 1;
        sizes = sizes(values.containsKey("sizes") ? "sizes" : "size");
        acknowledges = choice("reply", "whole", "ack") == 1;
        warmup = number("warmup", 1000, 0, 1L << 40);
        count = number("count", 10_000, 0, 1L << 30);
        periodNs = number("period_ns", 0, 0, Long.MAX_VALUE / 2);
        warmSeconds = decimal("warm_s", 0.5);
        seconds = decimal("secs", 2);
        rate = decimal("rate", 0);
        readers = (int) number("n", 1, 0, 10_000);
        id = (int) number("id", 0, 0, 1_000_000);
        touch = choice("touch", "0", "1", "all");
        domain = (int) number("domain", 7, 0, 232);
        broker = values.get("broker");
        startedNs = number("t0", 0, 0, Long.MAX_VALUE);
        out = values.get("out");
        only("batch", "1", "does not batch");
        only("loan", "0", "has no loans");
        if (choice("delivery", "unicast", "multicast", "broadcast") > 0) {
            throw wrong("delivery", "this system connects by TCP, which is unicast");
        }
    }

    private void only(String key, String value, String why) {
        if (!values.getOrDefault(key, value).equals(value)) {
            throw wrong(key, "this system " + why + "; " + key + "=" + value + " is all there is");
        }
    }

    private int choice(String key, String... names) {
        int index = Arrays.asList(names).indexOf(values.getOrDefault(key, names[0]));
        if (index < 0) {
            throw wrong(key, "expected one of " + String.join(", ", names));
        }
        return index;
    }

    private int[] sizes(String key) {
        String[] words = values.getOrDefault(key, "32").split(",", -1);
        int[] sizes = new int[words.length];
        for (int i = 0; i < words.length; i++) {
            sizes[i] = (int) parse(key, words[i], 4, SIZE_MAX);
        }
        return sizes;
    }

    private long number(String key, long initial, long least, long most) {
        return values.containsKey(key) ? parse(key, values.get(key), least, most) : initial;
    }

    private long parse(String key, String word, long least, long most) {
        try {
            long value = Long.parseLong(word);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below, with the range.
        }
        throw wrong(key, "expected numbers from " + least + " to " + most);
    }

    private double decimal(String key, double initial) {
        try {
            double value = values.containsKey(key) ? Double.parseDouble(values.get(key)) : initial;
            if (value >= 0 && value <= 1e9) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below, with the range.
        }
        throw wrong(key, "expected a number from 0 to 1e9");
    }

    /** The error of a value that cannot be honored. */
    public IllegalArgumentException wrong(String key, String why) {
        return new IllegalArgumentException(key + "=" + values.getOrDefault(key, "") + ": " + why);
    }
}
