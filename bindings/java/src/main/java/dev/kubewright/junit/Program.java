package dev.kubewright.junit;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;

/** Finds the kubewright program. */
final class Program {
    static final String VARIABLE = "KUBEWRIGHT";

    private Program() {}

    /** The path in the variable, else `kubewright` on the PATH. */
    static Path find(Map<String, String> environment) {
        String named = environment.getOrDefault(VARIABLE, "");
        if (!named.isEmpty()) {
            Path path = path(named);
            if (path == null || !isProgram(path)) {
                throw new KubewrightException("The variable " + VARIABLE + " is \"" + named
                        + "\", which is no program that can be run: give it the absolute path of the kubewright program");
            }
            return path;
        }
        for (String folder : environment.getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path path = folder.isEmpty() ? null : path(folder);
            if (path != null && isProgram(path.resolve("kubewright"))) {
                return path.resolve("kubewright");
            }
        }
        throw new KubewrightException("There is no kubewright program: set the variable " + VARIABLE + " to its path, "
                + "put a `kubewright` on the PATH, or install one there with `cargo install --locked kubewright-cli` "
                + "or from a release archive");
    }

    private static Path path(String text) {
        try {
            return Path.of(text);
        } catch (InvalidPathException invalid) {
            return null;
        }
    }

    private static boolean isProgram(Path path) {
        return Files.isRegularFile(path) && Files.isExecutable(path);
    }
}
