package peers;

import java.io.PrintStream;
import java.util.Locale;

/** JSON lines on standard output. Libraries that print go to standard error instead. */
public final class Lines {
    private static final PrintStream OUT = System.out;

    private Lines() {}

    /** Leaves standard output to the lines alone. */
    static void claim() {
        System.setOut(System.err);
    }

    /** An event with alternating keys and values: numbers, booleans or text. */
    static synchronized void say(String event, Object... fields) {
        StringBuilder line = new StringBuilder("{\"ev\":").append(quote(event));
        for (int i = 0; i < fields.length; i += 2) {
            line.append(',').append(quote((String) fields[i])).append(':').append(value(fields[i + 1]));
        }
        OUT.println(line.append('}'));
        OUT.flush();
    }

    private static String value(Object value) {
        if (value instanceof Double) {
            return String.format(Locale.ROOT, "%.9f", value);
        }
        return value instanceof Number || value instanceof Boolean ? value.toString() : quote(value.toString());
    }

    private static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\');
            }
            quoted.append(c < ' ' ? ' ' : c);
        }
        return quoted.append('"').toString();
    }
}
