package dev.kubewright.junit;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.deser.std.StdDeserializer;
import com.fasterxml.jackson.databind.ser.std.StdSerializer;
import java.io.IOException;
import java.io.Serial;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Durations as Go writes them, such as 1h30m. */
final class GoDuration {
    private static final Pattern PART = Pattern.compile("([0-9]+(?:\\.[0-9]+)?)(h|ms|m|s|us|µs|ns)");
    private static final Map<String, Long> NANOSECONDS = Map.of("h", 3_600_000_000_000L, "m", 60_000_000_000L,
            "s", 1_000_000_000L, "ms", 1_000_000L, "us", 1_000L, "µs", 1_000L, "ns", 1L);

    private GoDuration() {}

    static String write(Duration duration) {
        BigDecimal seconds = BigDecimal.valueOf(duration.getSeconds()).add(BigDecimal.valueOf(duration.getNano(), 9));
        return seconds.stripTrailingZeros().toPlainString() + "s";
    }

    static Duration read(String text) {
        Matcher part = PART.matcher(text);
        Duration sum = Duration.ZERO;
        int end = 0;
        while (part.find() && part.start() == end) {
            BigDecimal nanoseconds = new BigDecimal(part.group(1)).multiply(BigDecimal.valueOf(NANOSECONDS.get(part.group(2))));
            sum = sum.plusNanos(nanoseconds.longValue());
            end = part.end();
        }
        if (end == 0 || end != text.length()) {
            throw new IllegalArgumentException("\"" + text + "\" is no duration such as 1h30m");
        }
        return sum;
    }

    static final class Serializer extends StdSerializer<Duration> {
        @Serial
        private static final long serialVersionUID = 1;

        Serializer() {
            super(Duration.class);
        }

        @Override
        public void serialize(Duration value, JsonGenerator to, SerializerProvider provider) throws IOException {
            to.writeString(write(value));
        }
    }

    static final class Deserializer extends StdDeserializer<Duration> {
        @Serial
        private static final long serialVersionUID = 1;

        Deserializer() {
            super(Duration.class);
        }

        @Override
        public Duration deserialize(JsonParser from, DeserializationContext context) throws IOException {
            return read(from.getValueAsString());
        }
    }
}
