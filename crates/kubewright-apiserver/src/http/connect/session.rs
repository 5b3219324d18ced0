//! Sessions with processes in containers: how they are asked for.

use http::{Response, StatusCode};
use kubewright_meta::ApiError;

use super::super::dispatch::RequestInfo;
use super::super::respond::{self, ResponseBody};
use super::super::stream::{Purpose, Sessions};
use super::{Backend, refusal};
use crate::kubelet::{SimulatedPod, Streams};

pub(super) async fn answer(
    info: &RequestInfo<'_>,
    backend: Backend,
    purpose: Purpose,
) -> Result<Response<ResponseBody>, ApiError> {
    let Some(upgrade) = &info.upgrade else {
        return Err(ApiError::bad_request("Upgrade request required"));
    };
    let streams = streams(info);
    if !(streams.stdin || streams.stdout || streams.stderr) {
        let why = "you must specify at least 1 of stdin, stdout, stderr";
        return Ok(respond::text(StatusCode::BAD_REQUEST, why));
    }
    let sessions = match Sessions::negotiate(info.method, info.headers) {
        Ok(sessions) => sessions,
        Err(refused) => return Ok(*refused),
    };
    let Backend { kubelet, target } = backend;
    let session = match purpose {
        Purpose::Attach => kubelet.attach(target, streams).await,
        Purpose::Exec => kubelet.exec(target, command(info), streams).await,
    };
    Ok(match session {
        Ok(session) => sessions.serve(upgrade, info.server.shutdown(), streams, session, purpose),
        Err(refused) => refusal(&refused),
    })
}

/// A command in a container of a simulated pod; `None` where it is not known what it would do.
pub(super) fn answer_simulated(
    info: &RequestInfo<'_>,
    pod: &dyn SimulatedPod,
    container: &str,
) -> Option<Result<Response<ResponseBody>, ApiError>> {
    let (upgrade, streams) = (info.upgrade.as_ref()?, streams(info));
    let session = pod.exec(container, &command(info), streams)?;
    let sessions = match Sessions::negotiate(info.method, info.headers) {
        Ok(sessions) => sessions,
        Err(refused) => return Some(Ok(*refused)),
    };
    Some(Ok(match session {
        Ok(session) => sessions.serve(upgrade, info.server.shutdown(), streams, session, Purpose::Exec),
        Err(refused) => refusal(&refused),
    }))
}

fn command(info: &RequestInfo<'_>) -> Vec<String> {
    info.query.all("command").map(str::to_owned).collect()
}

/// The streams that are asked for; what comes out of a terminal comes out of one place.
fn streams(info: &RequestInfo<'_>) -> Streams {
    let flag = |name| info.query.flag(name);
    let tty = flag("tty");
    Streams { stdin: flag("stdin"), stdout: flag("stdout"), stderr: flag("stderr") && !tty, tty }
}
