//! The admission plugins of kube-apiserver v1.36: their names, which look at which kinds, which are on, and how they are switched
//! (`k8s.io/kubernetes/pkg/kubeapiserver/options/{plugins,admission}.go`).

use std::fmt;

/// Declares the plugins in Kubernetes' order, each with whether it is on by default and how far it is there.
macro_rules! plugins {
    ($($name:ident $on:ident $support:ident,)*) => {
        /// An admission plugin.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the names are Kubernetes' own, and documented there")]
        pub enum Plugin { $($name),* }

        impl Plugin {
            /// All of them, in the order in which they are asked.
            pub const ALL: [Self; plugins!(@count $($name)*)] = [$(Self::$name),*];

            /// The name, as flags and messages say it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }

            /// Whether it is on where nobody says otherwise.
            #[must_use]
            pub fn is_default(self) -> bool {
                match self { $(Self::$name => plugins!(@on $on)),* }
            }

            /// What is there of it.
            fn support(self) -> Support {
                match self { $(Self::$name => Support::$support),* }
            }
        }
    };
    (@count) => { 0 };
    (@count $first:ident $($rest:ident)*) => { 1 + plugins!(@count $($rest)*) };
    (@on on) => { true };
    (@on off) => { false };
}

/// What is there of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Support {
    /// It does what it does in Kubernetes.
    Full,
    /// What it is about is not served, or switched off by a feature gate: it has nothing to do.
    Idle,
    /// It takes a file of its own, which nobody can give, and without it does nothing.
    Unconfigured,
    /// It is not there.
    None,
}

plugins! {
    AlwaysAdmit off Full,
    NamespaceAutoProvision off Full,
    NamespaceLifecycle on Full,
    NamespaceExists off Full,
    LimitPodHardAntiAffinityTopology off Full,
    LimitRanger on Full,
    ServiceAccount on Full,
    NodeRestriction off None,
    TaintNodesByCondition on Full,
    AlwaysPullImages off Full,
    ImagePolicyWebhook off Unconfigured,
    PodSecurity on Full,
    PodNodeSelector off None,
    Priority on Full,
    DefaultTolerationSeconds on Full,
    PodTolerationRestriction off None,
    EventRateLimit off Unconfigured,
    ExtendedResourceToleration off Full,
    DefaultStorageClass on Full,
    StorageObjectInUseProtection on Full,
    PodGroupProtection on Idle,
    OwnerReferencesPermissionEnforcement off Full,
    PersistentVolumeClaimResize on Full,
    RuntimeClass on Full,
    CertificateApproval on Full,
    CertificateSigning on Full,
    ClusterTrustBundleAttest on Full,
    CertificateSubjectRestriction on Full,
    DefaultIngressClass on Full,
    DenyServiceExternalIPs off Full,
    PodTopologyLabels on Full,
    PodGroupWorkloadExists on Idle,
    NodeDeclaredFeatureValidator on Idle,
    JobValidation on Idle,
    PodResizeValidator on Full,
    MutatingAdmissionPolicy on Full,
    MutatingAdmissionWebhook on Full,
    ValidatingAdmissionPolicy on Full,
    ValidatingAdmissionWebhook on Full,
    ResourceQuota on Full,
    AlwaysDeny off Full,
}

impl Plugin {
    /// The plugin of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin| plugin.name() == name)
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why plugins cannot be switched so; the texts are kube-apiserver's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// There is no such plugin.
    #[error("{flag} plugin {name:?} is unknown")]
    Unknown {
        /// The flag that names it.
        flag: &'static str,
        /// The name.
        name: String,
    },
    /// It is switched on and off.
    #[error("[{0}] in enable-admission-plugins and disable-admission-plugins overlapped")]
    Overlap(Plugin),
}

/// A set of plugins, one bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginSet(u64);

impl PluginSet {
    /// Those that look at objects of every kind.
    pub const OF_EVERY_KIND: Self = Self::of(&[
        Plugin::AlwaysAdmit,
        Plugin::NamespaceAutoProvision,
        Plugin::NamespaceLifecycle,
        Plugin::NamespaceExists,
        Plugin::OwnerReferencesPermissionEnforcement,
        Plugin::MutatingAdmissionPolicy,
        Plugin::MutatingAdmissionWebhook,
        Plugin::ValidatingAdmissionPolicy,
        Plugin::ValidatingAdmissionWebhook,
        Plugin::ResourceQuota,
        Plugin::AlwaysDeny,
    ]);

    /// These.
    #[must_use]
    pub const fn of(plugins: &[Plugin]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < plugins.len() {
            set |= 1 << plugins[at] as u32;
            at += 1;
        }
        Self(set)
    }

    /// Those of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a plugin is in it.
    #[must_use]
    pub const fn has(self, plugin: Plugin) -> bool {
        self.0 & 1 << plugin as u32 != 0
    }

    /// Those that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those in it, in the order in which they are asked.
    pub fn iter(self) -> impl Iterator<Item = Plugin> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let first = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            Plugin::ALL.get(first).copied()
        })
    }

    const fn with(self, plugin: Plugin) -> Self {
        Self(self.0 | 1 << plugin as u32)
    }

    const fn without(self, plugin: Plugin) -> Self {
        Self(self.0 & !(1 << plugin as u32))
    }
}

/// Which admission plugins are asked. The default is kube-apiserver's.
#[derive(Clone, PartialEq, Eq)]
pub struct Plugins {
    on: PluginSet,
    enabled: PluginSet,
    disabled: PluginSet,
}

impl Default for Plugins {
    fn default() -> Self {
        let defaults = Plugin::ALL.into_iter().filter(|plugin| plugin.is_default());
        let on = defaults.fold(PluginSet(0), PluginSet::with);
        Self { on, enabled: PluginSet(0), disabled: PluginSet(0) }
    }
}

impl Plugins {
    /// These and no others, as the deprecated `--admission-control` says it. No name at all switches all off.
    ///
    /// # Errors
    /// [`PluginError::Unknown`].
    pub fn only<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, PluginError> {
        let mut on = PluginSet(0);
        for name in names {
            on = on.with(named("admission-control", name)?);
        }
        Ok(Self { on, enabled: PluginSet(0), disabled: PluginSet(0) })
    }

    /// Switches one on, as `--enable-admission-plugins` does.
    ///
    /// # Errors
    /// [`PluginError`]: there is none of this name, or [`Self::disable`] has named it.
    pub fn enable(mut self, name: &str) -> Result<Self, PluginError> {
        let plugin = named("enable-admission-plugins", name)?;
        self.enabled = self.enabled.with(plugin);
        self.on = self.on.with(plugin);
        self.no_overlap(plugin)
    }

    /// Switches one off, as `--disable-admission-plugins` does.
    ///
    /// # Errors
    /// [`PluginError`]: there is none of this name, or [`Self::enable`] has named it.
    pub fn disable(mut self, name: &str) -> Result<Self, PluginError> {
        let plugin = named("disable-admission-plugins", name)?;
        self.disabled = self.disabled.with(plugin);
        self.on = self.on.without(plugin);
        self.no_overlap(plugin)
    }

    fn no_overlap(self, plugin: Plugin) -> Result<Self, PluginError> {
        let both = self.enabled.has(plugin) && self.disabled.has(plugin);
        if both { Err(PluginError::Overlap(plugin)) } else { Ok(self) }
    }

    /// Whether it is on.
    #[must_use]
    pub fn has(&self, plugin: Plugin) -> bool {
        self.on.has(plugin)
    }

    /// Those that are on.
    #[must_use]
    pub fn on(&self) -> PluginSet {
        self.on
    }

    /// Those that are on, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = Plugin> {
        self.on.iter()
    }

    /// What whoever switched them on should know: which of them do nothing here.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.iter()
            .filter_map(|plugin| match plugin.support() {
                Support::Full | Support::Idle => None,
                Support::Unconfigured => Some(format!(
                    "admission plugin {plugin} is not supported: its configuration file is not read, nothing is limited"
                )),
                Support::None => Some(format!("admission plugin {plugin} is not supported: it admits everything")),
            })
            .collect()
    }
}

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

fn named(flag: &'static str, name: &str) -> Result<Plugin, PluginError> {
    Plugin::named(name).ok_or_else(|| PluginError::Unknown { flag, name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_kubernetes_own() {
        let on: Vec<&str> = Plugins::default().iter().map(Plugin::name).collect();
        assert_eq!(on.len(), 27);
        assert!(on.contains(&"ServiceAccount") && !on.contains(&"NodeRestriction"));
        assert_eq!(Plugins::default().warnings(), Vec::<String>::new());
    }

    #[test]
    fn each_that_is_on_can_be_switched_off_and_each_that_is_off_on() {
        for plugin in Plugin::ALL {
            assert_eq!(Plugin::named(plugin.name()), Some(plugin));
            let switched = match plugin.is_default() {
                true => Plugins::default().disable(plugin.name()),
                false => Plugins::default().enable(plugin.name()),
            };
            let switched = switched.expect("a known plugin");
            assert_ne!(switched.has(plugin), plugin.is_default(), "{plugin}");
            let others = Plugin::ALL.into_iter().filter(|other| *other != plugin);
            assert!(others.into_iter().all(|other| switched.has(other) == other.is_default()));
        }
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_kube_apiserver() {
        let told = |outcome: Result<Plugins, PluginError>| outcome.expect_err("a mistake").to_string();
        assert_eq!(
            told(Plugins::default().enable("serviceaccount")),
            "enable-admission-plugins plugin \"serviceaccount\" is unknown"
        );
        assert_eq!(
            told(Plugins::default().disable("X")),
            "disable-admission-plugins plugin \"X\" is unknown"
        );
        assert_eq!(told(Plugins::only(["X"])), "admission-control plugin \"X\" is unknown");
        let both = Plugins::default().enable("LimitRanger").and_then(|one| one.disable("LimitRanger"));
        assert_eq!(
            told(both),
            "[LimitRanger] in enable-admission-plugins and disable-admission-plugins overlapped"
        );
    }

    #[test]
    fn the_legacy_list_replaces_the_whole() {
        let plugins = Plugins::only(["LimitRanger", "NodeRestriction"]).expect("both are known");
        assert_eq!(plugins.iter().collect::<Vec<_>>(), [Plugin::LimitRanger, Plugin::NodeRestriction]);
        assert_eq!(
            plugins.warnings(),
            ["admission plugin NodeRestriction is not supported: it admits everything"]
        );
        assert_eq!(Plugins::only([]).expect("nothing is unknown").iter().count(), 0);
    }
}
