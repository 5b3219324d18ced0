package dev.kubewright.junit;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.List;

/**
 * Selects requests for objects. What is null (or, of the verbs, empty) may be anything. Begin with {@link #any()}, and
 * say more: {@code Match.any().group("apps").resource("deployments").verbs("update", "patch")}.
 *
 * @param verbs those of RBAC: get, list, watch, create, update, patch, delete, deletecollection
 * @param group the API group; "" is the core group
 * @param resource the plural, such as "deployments"
 * @param subresource one such as "status"; "" is the object itself
 * @param namespace the namespace of the request; "" is none or all of them
 * @param name the name in the URL; a create has none there
 * @param user who asks; with a "*" at its end, all whose name begins so
 * @param userAgent how the header User-Agent begins
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record Match(
        List<String> verbs,
        String group,
        String resource,
        String subresource,
        String namespace,
        String name,
        String user,
        String userAgent) {

    /** Takes a copy of the verbs. */
    public Match {
        verbs = verbs == null ? List.of() : List.copyOf(verbs);
    }

    /**
     * Selects everything.
     *
     * @return where to begin
     */
    public static Match any() {
        return new Match(List.of(), null, null, null, null, null, null, null);
    }

    /**
     * Selects some verbs.
     *
     * @param verbs those of RBAC
     * @return the same, of these verbs
     */
    public Match verbs(String... verbs) {
        return new Match(List.of(verbs), group, resource, subresource, namespace, name, user, userAgent);
    }

    /**
     * Selects an API group.
     *
     * @param group its name; "" is the core group
     * @return the same, in this group
     */
    public Match group(String group) {
        return new Match(verbs, group, resource, subresource, namespace, name, user, userAgent);
    }

    /**
     * Selects a resource.
     *
     * @param resource its plural
     * @return the same, of this resource
     */
    public Match resource(String resource) {
        return new Match(verbs, group, resource, subresource, namespace, name, user, userAgent);
    }

    /**
     * Selects a subresource.
     *
     * @param subresource its name; "" is the object itself
     * @return the same, of this subresource
     */
    public Match subresource(String subresource) {
        return new Match(verbs, group, resource, subresource, namespace, name, user, userAgent);
    }

    /**
     * Selects a namespace.
     *
     * @param namespace its name; "" is none or all of them
     * @return the same, in this namespace
     */
    public Match namespace(String namespace) {
        return new Match(verbs, group, resource, subresource, namespace, name, user, userAgent);
    }

    /**
     * Selects a name.
     *
     * @param name the name in the URL
     * @return the same, of this name
     */
    public Match name(String name) {
        return new Match(verbs, group, resource, subresource, namespace, name, user, userAgent);
    }

    /**
     * Selects a user.
     *
     * @param user who asks; with a "*" at its end, all whose name begins so
     * @return the same, of this user
     */
    public Match user(String user) {
        return new Match(verbs, group, resource, subresource, namespace, name, user, userAgent);
    }

    /**
     * Selects user agents.
     *
     * @param userAgent how the header User-Agent begins
     * @return the same, of these user agents
     */
    public Match userAgent(String userAgent) {
        return new Match(verbs, group, resource, subresource, namespace, name, user, userAgent);
    }
}
