//! Who a container is.
//!
//! The kubelet decides by number where it can (`pkg/kubelet/kuberuntime/security_context*.go`); what the image knows of
//! its users is looked up as containerd does it. As with these two, the group in an image's `USER` does not count
//! (kubernetes/kubernetes#61967): a user's group is that of `/etc/passwd`, or root's.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, Pod, PodSecurityContext, SecurityContext};

use super::InputError;
use super::place;
use crate::container::Identity;

/// What an image knows of users.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    /// Its `/etc/passwd`; empty where there is none.
    pub(super) passwd: String,
    /// Its `/etc/group`; empty where there is none.
    pub(super) group: String,
}

/// A container's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) identity: Identity,
    /// `HOME`.
    pub(super) home: String,
}

/// A line of `/etc/passwd`.
struct Account<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
}

/// Who a container of an image with this `USER` is.
///
/// # Errors
/// It must not be root and is, or cannot be told not to be; the image does not know the user.
pub(super) fn user(
    pod: &Pod,
    container: &Container,
    image_user: &str,
    accounts: &Accounts,
) -> Result<User, InputError> {
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let wanted = EffectiveSecurityContext::of(of_pod, container.security_context.as_ref());
    let image_user = ImageUser::of(image_user);
    if wanted.not_root {
        wanted.refuse_root(&image_user, pod, container).map_or(Ok(()), |why| Err(InputError::Config(why)))?;
    }
    let known = accounts.passwd.lines().filter_map(Account::of);
    let (uid, account) = match (wanted.user, image_user) {
        (Some(uid), _) => (id(uid)?, None),
        (None, ImageUser::Number(uid)) => (id(uid)?, None),
        (None, ImageUser::Name(name)) => {
            let account = known.clone().find(|account| account.name == name);
            let missing = || format!("unable to find user {name}: no matching entries in passwd file");
            let account = account.ok_or_else(|| InputError::Create(missing()))?;
            (account.uid, Some(account))
        }
    };
    let account = account.or_else(|| known.clone().find(|account| account.uid == uid));
    let gid = match wanted.group {
        Some(gid) => id(gid)?,
        None => account.as_ref().map_or(0, |account| account.gid),
    };
    let mut groups = BTreeSet::new();
    if !wanted.only_stated_groups {
        let name = account.as_ref().map(|account| account.name);
        groups.extend(name.into_iter().flat_map(|name| memberships(&accounts.group, name)));
    }
    for group in of_pod.iter().flat_map(|context| context.supplemental_groups.iter().flatten()) {
        groups.insert(id(*group)?);
    }
    if let Some(group) = of_pod.and_then(|context| context.fs_group) {
        groups.insert(id(group)?);
    }
    groups.remove(&gid);
    let home = account.map(|account| account.home).filter(|home| !home.is_empty()).unwrap_or("/");
    let identity = Identity { uid, gid, groups: groups.into_iter().collect() };
    Ok(User { identity, home: home.to_owned() })
}

/// What the pod says, and the container over it (`DetermineEffectiveSecurityContext`).
struct EffectiveSecurityContext {
    user: Option<i64>,
    group: Option<i64>,
    not_root: bool,
    /// `supplementalGroupsPolicy: Strict`: what the image says of groups does not count.
    only_stated_groups: bool,
}

/// The user in an image's configuration: kubelet and runtime speak of a number where it is one.
enum ImageUser<'a> {
    Number(i64),
    Name(&'a str),
}

impl EffectiveSecurityContext {
    fn of(pod: Option<&PodSecurityContext>, container: Option<&SecurityContext>) -> Self {
        let or_of_pod = |own: Option<i64>, of_pod: fn(&PodSecurityContext) -> Option<i64>| {
            own.or_else(|| pod.and_then(of_pod))
        };
        let not_root = container.and_then(|context| context.run_as_non_root);
        Self {
            user: or_of_pod(container.and_then(|own| own.run_as_user), |pod| pod.run_as_user),
            group: or_of_pod(container.and_then(|own| own.run_as_group), |pod| pod.run_as_group),
            not_root: not_root.or_else(|| pod?.run_as_non_root).unwrap_or_default(),
            only_stated_groups: pod.and_then(|pod| pod.supplemental_groups_policy.as_deref())
                == Some("Strict"),
        }
    }

    /// Why the container may not run where it must not as root (`verifyRunAsNonRoot`).
    fn refuse_root(&self, image: &ImageUser<'_>, pod: &Pod, container: &Container) -> Option<String> {
        let what = match (self.user, image) {
            (Some(0), _) => "container's runAsUser breaks non-root policy".to_owned(),
            (None, ImageUser::Name(name)) => {
                format!(
                    "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root"
                )
            }
            (None, ImageUser::Number(0)) => {
                "container has runAsNonRoot and image will run as root".to_owned()
            }
            (None, ImageUser::Number(uid)) if i32::try_from(*uid).is_err() || *uid < 0 => format!(
                "container has runAsNonRoot and image has an invalid user id ({uid}). (Must be 1-({})): must be between 0 and {}, inclusive",
                i32::MAX,
                i32::MAX
            ),
            _ => return None,
        };
        let pod = format!("{}_{}({})", place::name(pod), place::namespace(pod), place::uid(pod));
        Some(format!("{what} (pod: {pod:?}, container: {})", container.name))
    }
}

impl<'a> ImageUser<'a> {
    fn of(user: &'a str) -> Self {
        let name = user.split(':').next().unwrap_or_default();
        match name.parse() {
            Ok(number) => Self::Number(number),
            Err(_) if name.is_empty() => Self::Number(0),
            Err(_) => Self::Name(name),
        }
    }
}

impl<'a> Account<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut fields = line.trim().split(':');
        let name = fields.next().filter(|name| !name.is_empty() && !name.starts_with('#'))?;
        let mut fields = fields.skip(1);
        let uid = fields.next()?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Self { name, uid, gid, home: fields.nth(1).unwrap_or_default() })
    }
}

/// The groups that `/etc/group` lists this user in.
fn memberships<'a>(group: &'a str, name: &'a str) -> impl Iterator<Item = u32> + 'a {
    group.lines().filter_map(move |line| {
        let mut fields = line.trim().split(':').skip(2);
        let gid = fields.next()?.parse().ok()?;
        fields.next()?.split(',').any(|member| member == name).then_some(gid)
    })
}

fn id(number: i64) -> Result<u32, InputError> {
    u32::try_from(number).map_err(|_| InputError::Create(format!("invalid user or group id {number}")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::inputs::fixture::{first, pod};

    #[expect(clippy::needless_pass_by_value, reason = "so that tests say `of(json!(..), ..)`")]
    fn of(of_pod: Value, of_container: Value, image: &str) -> Result<User, InputError> {
        let pod = pod(json!({"securityContext": of_pod,
            "containers": [{"name": "app", "securityContext": of_container}]}));
        let accounts = Accounts {
            passwd: "# users\nroot:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/var/www:\nbroken\n".to_owned(),
            group: "root:x:0:\nadm:x:4:root,web\nwww:x:34:web\nlp:x:7:other".to_owned(),
        };
        user(&pod, first(&pod), image, &accounts)
    }

    fn ids(user: Result<User, InputError>) -> (u32, u32, Vec<u32>) {
        let Identity { uid, gid, groups } = user.unwrap().identity;
        (uid, gid, groups)
    }

    #[test]
    fn the_container_counts_before_the_pod_before_the_image() {
        assert_eq!(ids(of(json!({}), json!({}), "")), (0, 0, vec![4]));
        assert_eq!(ids(of(json!({}), json!({}), "web")), (33, 34, vec![4]));
        assert_eq!(ids(of(json!({}), json!({}), "33")), (33, 34, vec![4]), "a number is looked up, too");
        assert_eq!(
            ids(of(json!({}), json!({}), "1000:2000")),
            (1000, 0, vec![]),
            "the image's group does not count"
        );
        assert_eq!(ids(of(json!({"runAsUser": 5}), json!({}), "web")), (5, 0, vec![]));
        assert_eq!(
            ids(of(json!({"runAsUser": 5, "runAsGroup": 6}), json!({"runAsUser": 7}), "web")),
            (7, 6, vec![])
        );
    }

    #[test]
    fn groups_are_those_of_the_pod_and_of_the_image_unless_it_wants_only_the_stated() {
        let stated = |policy: &str| json!({"fsGroup": 100, "supplementalGroups": [7, 34], "supplementalGroupsPolicy": policy});
        assert_eq!(ids(of(stated("Merge"), json!({}), "web")), (33, 34, vec![4, 7, 100]));
        assert_eq!(ids(of(stated("Strict"), json!({}), "web")), (33, 34, vec![7, 100]));
    }

    #[test]
    fn a_home_is_that_of_the_user() {
        assert_eq!(of(json!({}), json!({}), "web").unwrap().home, "/var/www");
        assert_eq!(of(json!({}), json!({}), "999").unwrap().home, "/");
    }

    #[test]
    fn who_must_not_be_root_is_not() {
        let not_root = || json!({"runAsNonRoot": true});
        let message = |result: Result<User, InputError>| {
            let error = result.unwrap_err();
            assert_eq!(error.reason(), "CreateContainerConfigError");
            error.to_string()
        };
        assert_eq!(
            message(of(not_root(), json!({}), "")),
            "container has runAsNonRoot and image will run as root (pod: \"web_ns(u1)\", container: app)"
        );
        assert_eq!(
            message(of(not_root(), json!({}), "web:www")),
            "container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root (pod: \
             \"web_ns(u1)\", container: app)"
        );
        assert_eq!(
            message(of(not_root(), json!({"runAsUser": 0}), "33")),
            "container's runAsUser breaks non-root policy (pod: \"web_ns(u1)\", container: app)"
        );
        assert_eq!(ids(of(not_root(), json!({}), "33")).0, 33);
        assert_eq!(ids(of(not_root(), json!({"runAsUser": 5}), "")).0, 5);
        assert_eq!(ids(of(not_root(), json!({"runAsNonRoot": false}), "")).0, 0);
    }

    #[test]
    fn a_user_that_the_image_does_not_know_cannot_be_created() {
        let error = of(json!({}), json!({}), "nobody").unwrap_err();
        assert_eq!(
            error,
            InputError::Create("unable to find user nobody: no matching entries in passwd file".into())
        );
    }
}
