package dev.kubewright.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Has a parameter of type String get the kubeconfig of the test's cluster, as YAML, for clients that {@link Kubewright} does not
 * inject. Where its file is says {@link KubewrightCluster#kubeconfig()}.
 */
@Documented
@Target(ElementType.PARAMETER)
@Retention(RetentionPolicy.RUNTIME)
public @interface Kubeconfig {}
