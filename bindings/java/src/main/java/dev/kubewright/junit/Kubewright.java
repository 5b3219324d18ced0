package dev.kubewright.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives the tests of a class, or one test, a cluster. A test method, its {@code @BeforeEach} and {@code @AfterEach} methods and the
 * constructor of its class may have parameters of these types:
 *
 * <ul>
 *   <li>{@link KubewrightCluster}
 *   <li>{@code io.fabric8.kubernetes.client.KubernetesClient}, with fabric8's client on the class path
 *   <li>{@code io.kubernetes.client.openapi.ApiClient}, with the official client on the class path
 *   <li>String with {@link Kubeconfig}: the kubeconfig, as YAML
 * </ul>
 *
 * <p>A test has its cluster to itself until it ends. The tests of a JVM share clusters: one that no test uses any more is
 * reset and handed to the next that asks for the same settings. So tests that run one after the other start one cluster, and
 * parallel ones as many as run at the same time. A cluster with a {@link #clock()} is not shared, as a reset does not set
 * time back: it is started for the test, and stopped when the test ends.
 *
 * <p>On a method it counts in place of the one of the class.
 */
@Documented
@Inherited
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(KubewrightExtension.class)
public @interface Kubewright {
    /**
     * The version of Kubernetes that is served.
     *
     * @return such as "1.36"; empty is the newest
     */
    String kubernetesVersion() default "";

    /**
     * How many simulated nodes there are.
     *
     * @return the number
     */
    int nodes() default 1;

    /**
     * Which built-in controllers run.
     *
     * @return kube-controller-manager's names; "*" is all of them, "-name" all but that one, and none runs for an empty array
     */
    String[] controllers() default "*";

    /**
     * When cluster time starts and how fast it passes.
     *
     * @return as {@link KubewrightCluster.Builder#clock}; empty is the machine's clock, which cannot be advanced
     */
    String clock() default "";
}
