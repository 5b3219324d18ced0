//! Probes: whether a container has started, lives, and is ready (`pkg/kubelet/prober`, `pkg/probe`).

mod exec;
mod grpc;
mod http;
mod rounds;
mod tcp;
mod url;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

pub(crate) use self::exec::output_of;
pub(crate) use self::http::get;
pub(crate) use self::rounds::{Rounds, Sink};
pub(crate) use self::tcp::connect;
use crate::container::Container;

/// How often a probe that could not even be tried is tried again.
const TRIES: usize = 3;

/// What a probe asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeKind {
    Startup,
    Liveness,
    Readiness,
}

impl ProbeKind {
    /// The probe of this kind that a container has.
    pub(crate) fn of(self, container: &ContainerSpec) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
        }
    }
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        })
    }
}

/// What came of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProbeResult {
    /// As it should be.
    Good,
    /// Good, with something to tell.
    Warning(String),
    /// Not as it should be.
    Bad(String),
    /// It could not be asked: counts as nothing.
    Unknown(String),
}

/// A container that is probed.
#[derive(Clone, Debug)]
pub(crate) struct ProbeTarget {
    pub(crate) spec: Arc<ContainerSpec>,
    pub(crate) container: Arc<dyn Container>,
    /// The address of its pod.
    pub(crate) address: IpAddr,
    /// `name_namespace(uid)`, for messages.
    pub(crate) pod: Arc<str>,
}

impl ProbeTarget {
    /// Asks, and again where that was not possible.
    pub(crate) async fn probe(&self, probe: &Probe) -> ProbeResult {
        let mut answer = ProbeResult::Unknown(String::new());
        for _ in 0..TRIES {
            answer = self.try_once(probe).await;
            if !matches!(answer, ProbeResult::Unknown(_)) {
                break;
            }
        }
        answer
    }

    async fn try_once(&self, probe: &Probe) -> ProbeResult {
        let timeout =
            Duration::from_secs(u64::try_from(probe.timeout_seconds.unwrap_or(1)).unwrap_or(1).max(1));
        if let Some(exec) = &probe.exec {
            return exec::probe(&*self.container, exec.command.clone().unwrap_or_default(), timeout).await;
        }
        if let Some(action) = &probe.http_get {
            return match self.url(action) {
                Ok(url) => {
                    http::probe(&url, action.http_headers.as_deref().unwrap_or_default(), timeout).await
                }
                Err(problem) => ProbeResult::Unknown(problem),
            };
        }
        if let Some(action) = &probe.tcp_socket {
            let host = host(action.host.as_deref(), self.address);
            return match self.port(&action.port) {
                Ok(port) => match tcp::connect(&host, port, timeout).await {
                    Ok(_) => ProbeResult::Good,
                    Err(problem) => ProbeResult::Bad(problem),
                },
                Err(problem) => ProbeResult::Unknown(problem),
            };
        }
        if let Some(action) = &probe.grpc {
            let service = action.service.as_deref().unwrap_or_default();
            return match u16::try_from(action.port) {
                Ok(port) => grpc::probe(&self.address.to_string(), port, service, timeout).await,
                Err(_) => ProbeResult::Unknown(format!("invalid port number: {}", action.port)),
            };
        }
        ProbeResult::Unknown(format!("missing probe handler for {}:{}", self.pod, self.spec.name))
    }

    /// Where an HTTP probe or hook asks.
    pub(crate) fn url(&self, action: &HTTPGetAction) -> Result<url::Url, String> {
        Ok(url::Url {
            scheme: action.scheme.as_deref().unwrap_or("HTTP").to_lowercase(),
            host: host(action.host.as_deref(), self.address),
            port: self.port(&action.port)?,
            path: url::path(action.path.as_deref().unwrap_or_default()),
        })
    }

    /// A port by number, or by its name in the container (`ResolveContainerPort` in `pkg/probe/util.go`).
    pub(crate) fn port(&self, port: &IntOrString) -> Result<u16, String> {
        let number = match port {
            IntOrString::Int(number) => *number,
            IntOrString::String(name) => {
                let mut ports = self.spec.ports.iter().flatten();
                match ports.find(|port| port.name.as_deref() == Some(name)) {
                    Some(port) => port.container_port,
                    None => {
                        name.parse().map_err(|_| format!("strconv.Atoi: parsing {name:?}: invalid syntax"))?
                    }
                }
            }
        };
        u16::try_from(number)
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| format!("invalid port number: {number}"))
    }
}

/// What a request of a kubelet says of who it is from: the program, and the version of Kubernetes.
pub(crate) fn user_agent(program: &str) -> String {
    format!("{program}/{}", kubewright_spec::Version::DEFAULT)
}

fn host(named: Option<&str>, address: IpAddr) -> String {
    named.filter(|host| !host.is_empty()).map_or_else(|| address.to_string(), str::to_owned)
}
