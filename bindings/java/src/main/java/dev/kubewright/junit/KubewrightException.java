package dev.kubewright.junit;

import java.io.Serial;

/** A cluster that does not start, cannot be reached, or refuses what it is asked. The message says what to do. */
public class KubewrightException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1;

    private final int code;

    KubewrightException(String message) {
        this(message, 0, null);
    }

    KubewrightException(String message, Throwable cause) {
        this(message, 0, cause);
    }

    KubewrightException(String message, int code, Throwable cause) {
        super(message, cause);
        this.code = code;
    }

    /**
     * What the server answered.
     *
     * @return the HTTP status of a request that was refused; 0 where there was no answer
     */
    public int code() {
        return code;
    }
}
