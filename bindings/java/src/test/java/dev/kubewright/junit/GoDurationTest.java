package dev.kubewright.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class GoDurationTest {
    @Test
    void durationsAreReadAndWrittenAsGoHasThem() {
        assertEquals(Duration.ofMinutes(90), GoDuration.read("1h30m"));
        assertEquals(Duration.ofMillis(1500), GoDuration.read("1.5s"));
        assertEquals(Duration.ofNanos(1_002_003), GoDuration.read("1ms2µs3ns"));
        assertEquals("86400s", GoDuration.write(Duration.ofDays(1)));
        assertEquals("-1.5s", GoDuration.write(Duration.ofMillis(-1500)));
        assertEquals("0.25s", GoDuration.write(Duration.ofMillis(250)));
        for (String wrong : new String[] {"", "1", "h", "1h x", "1h30", "PT1H"}) {
            assertThrows(IllegalArgumentException.class, () -> GoDuration.read(wrong), wrong);
        }
    }
}
