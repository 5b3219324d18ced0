package dev.kubewright.junit;

import java.io.IOException;
import java.lang.reflect.Parameter;
import java.nio.file.Files;
import java.util.Optional;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.StoreScope;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestInstantiationAwareExtension;
import org.junit.platform.commons.support.AnnotationSupport;

/** Injects clusters and their clients: see {@link Kubewright}. */
final class KubewrightExtension implements ParameterResolver, TestInstantiationAwareExtension {
    private static final Namespace NAMESPACE = Namespace.create(KubewrightExtension.class);

    @Override
    public ExtensionContextScope getTestInstantiationExtensionContextScope(ExtensionContext root) {
        return ExtensionContextScope.TEST_METHOD;
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.isAnnotated(Kubeconfig.class)
                || parameter.getParameter().getType() == KubewrightCluster.class
                || client(parameter.getParameter()).isPresent();
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        if (context.getTestMethod().isEmpty()) {
            throw new ParameterResolutionException("A cluster is a test's: take it as a parameter of a test method, of a method "
                    + "with @BeforeEach or @AfterEach, or of the constructor of a class whose instances live as long as a test. "
                    + "For @BeforeAll, start one with KubewrightCluster.start()");
        }
        boolean isKubeconfig = parameter.isAnnotated(Kubeconfig.class);
        if (isKubeconfig && parameter.getParameter().getType() != String.class) {
            throw new ParameterResolutionException("A parameter with @Kubeconfig is a "
                    + parameter.getParameter().getType().getName() + ": make it a String, or leave @Kubeconfig out");
        }
        ExtensionContext.Store store = context.getStore(NAMESPACE);
        KubewrightCluster cluster =
                store.getOrComputeIfAbsent(Lease.class, key -> lease(context), Lease.class).cluster();
        if (isKubeconfig) {
            return kubeconfig(cluster);
        }
        return client(parameter.getParameter())
                .<Object>map(client -> store.getOrComputeIfAbsent(client, made -> made.open(cluster), InjectedClient.Opened.class)
                        .client())
                .orElse(cluster);
    }

    private static Optional<InjectedClient> client(Parameter parameter) {
        return InjectedClient.of(parameter.getType());
    }

    private static String kubeconfig(KubewrightCluster cluster) {
        try {
            return Files.readString(cluster.kubeconfig());
        } catch (IOException error) {
            throw new KubewrightException("The kubeconfig of the cluster cannot be read: " + error.getMessage(), error);
        }
    }

    private static Lease lease(ExtensionContext context) {
        return context.getStore(StoreScope.LAUNCHER_SESSION, NAMESPACE)
                .getOrComputeIfAbsent(ClusterPool.class, key -> new ClusterPool(), ClusterPool.class)
                .lease(settings(context));
    }

    /** What the nearest annotation says. */
    private static KubewrightCluster.Builder settings(ExtensionContext context) {
        Kubewright said = AnnotationSupport.findAnnotation(context.getRequiredTestMethod(), Kubewright.class)
                .or(() -> AnnotationSupport.findAnnotation(
                        context.getRequiredTestClass(), Kubewright.class, context.getEnclosingTestClasses()))
                .orElseThrow();
        return KubewrightCluster.builder()
                .kubernetesVersion(said.kubernetesVersion())
                .nodes(said.nodes())
                .controllers(said.controllers())
                .clock(said.clock());
    }

    /** A cluster that a test has; closed with the test. */
    record Lease(KubewrightCluster cluster, Runnable end) implements AutoCloseable {
        @Override
        public void close() {
            end.run();
        }
    }
}
