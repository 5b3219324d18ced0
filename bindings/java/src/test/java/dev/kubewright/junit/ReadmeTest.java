package dev.kubewright.junit;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class ReadmeTest {
    @Test
    void theReadmeHasTheTestsThatPass() throws IOException {
        String readme = Files.readString(Path.of("README.md"));
        for (String name : new String[] {"FirstTest", "OfficialClientTest"}) {
            String source = Files.readString(Path.of("src/test/java/dev/kubewright/junit/" + name + ".java"));
            String test = source.substring(source.indexOf("@Kubewright\n"));
            assertTrue(readme.contains(test), () -> "README.md does not have\n" + test);
        }
    }
}
