package dev.kubewright.junit;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** A running `kubewright up`, which ends when its standard input closes: with this JVM, whatever ends that. */
final class ServerProcess {
    private static final Duration START_TIMEOUT = Duration.ofMinutes(1);
    private static final Duration STOP_GRACE = Duration.ofSeconds(10);
    private static final long POLL_MILLISECONDS = 2;

    private final Path program;
    private final Path kubeconfig;
    private final Process process;
    private final Tail stderr;

    private ServerProcess(Path program, Path kubeconfig, Process process) {
        this.program = program;
        this.kubeconfig = kubeconfig;
        this.process = process;
        this.stderr = new Tail(process.getErrorStream());
    }

    /** Starts it, and returns when its kubeconfig is there. */
    static ServerProcess start(Path program, List<String> options) {
        // The program makes the file, readable by this user only, and removes it when it ends.
        Path kubeconfig = Path.of(System.getProperty("java.io.tmpdir"), "kubewright-" + UUID.randomUUID() + ".kubeconfig");
        List<String> command = new ArrayList<>(List.of(program.toString(), "up", "--port=0", "--admin", "--quiet",
                "--exit-with-stdin", "--kubeconfig=" + kubeconfig));
        command.addAll(options);
        ServerProcess server;
        try {
            ProcessBuilder builder = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD);
            server = new ServerProcess(program, kubeconfig, builder.start());
        } catch (IOException error) {
            throw new KubewrightException(program + " cannot be run: " + error.getMessage(), error);
        }
        try {
            server.awaitKubeconfig();
            return server;
        } catch (KubewrightException failed) {
            try {
                server.stop();
            } catch (KubewrightException alsoFailed) {
                failed.addSuppressed(alsoFailed);
            }
            throw failed;
        }
    }

    private void awaitKubeconfig() {
        long deadline = System.nanoTime() + START_TIMEOUT.toNanos();
        // The file appears whole.
        while (!Files.exists(kubeconfig)) {
            try {
                if (process.waitFor(POLL_MILLISECONDS, TimeUnit.MILLISECONDS)) {
                    throw new KubewrightException("The cluster did not start: " + failure());
                }
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new KubewrightException("Interrupted while the cluster was starting", interrupted);
            }
            if (System.nanoTime() > deadline) {
                throw new KubewrightException("The cluster did not start within " + START_TIMEOUT.toSeconds() + " seconds");
            }
        }
    }

    Path kubeconfig() {
        return kubeconfig;
    }

    boolean isRunning() {
        return process.isAlive();
    }

    /** How it ended and what it said. It has ended. */
    String failure() {
        String said = stderr.text();
        return program + " ended with " + process.exitValue() + ": " + (said.isEmpty() ? "it said nothing" : said);
    }

    /** Ends it and waits for its end. */
    void stop() {
        boolean interrupted = false;
        boolean killed = false;
        try {
            process.getOutputStream().close();
        } catch (IOException alreadyClosed) {
            // It has ended.
        }
        try {
            if (!process.waitFor(STOP_GRACE.toMillis(), TimeUnit.MILLISECONDS)) {
                killed = true;
            }
        } catch (InterruptedException interruption) {
            interrupted = true;
        }
        if (killed || interrupted) {
            process.destroyForcibly().onExit().join();
        }
        try {
            // A program that was killed leaves it.
            Files.deleteIfExists(kubeconfig);
        } catch (IOException error) {
            throw new KubewrightException("The kubeconfig is not removed: " + error.getMessage(), error);
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
        if (killed) {
            throw new KubewrightException(program + " did not end within " + STOP_GRACE.toSeconds() + " seconds and was killed");
        }
    }

    /** The end of what a stream says. */
    private static final class Tail {
        private static final int LENGTH = 64 << 10;

        private final Thread reader;
        private final StringBuilder kept = new StringBuilder();

        Tail(InputStream stream) {
            reader = new Thread(() -> read(stream), "kubewright-stderr");
            reader.setDaemon(true);
            reader.start();
        }

        private void read(InputStream stream) {
            byte[] buffer = new byte[4096];
            try (stream) {
                for (int count; (count = stream.read(buffer)) >= 0; ) {
                    synchronized (kept) {
                        kept.append(new String(buffer, 0, count, StandardCharsets.UTF_8));
                        kept.delete(0, Math.max(0, kept.length() - LENGTH));
                    }
                }
            } catch (IOException | UncheckedIOException closed) {
                // There is no more to read.
            }
        }

        /** All of it, once the process has ended. */
        String text() {
            try {
                reader.join(1000);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            synchronized (kept) {
                return kept.toString().strip();
            }
        }
    }
}
