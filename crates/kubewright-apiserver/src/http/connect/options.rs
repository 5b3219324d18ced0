//! What a client asks of a connection, as an object of its own kind: its query
//! (`k8s.io/apimachinery/pkg/runtime/converter`), and the path behind a proxy.

use kubewright_codec::request::Query;
use kubewright_kinds::Subresource;
use kubewright_meta::ApiError;
use serde_json::{Map, Value};

/// The options of a connection by a subresource; `None` of one that is a plain read.
///
/// # Errors
/// 400 for a port that is no number.
pub(super) fn of(
    subresource: &Subresource,
    query: &Query,
    behind: Option<&str>,
) -> Result<Option<Value>, ApiError> {
    let Some((_, version, kind)) = subresource.body_kind() else { return Ok(None) };
    let mut options = Map::new();
    options.insert("kind".to_owned(), kind.into());
    options.insert("apiVersion".to_owned(), version.into());
    match subresource {
        Subresource::Exec | Subresource::Attach => {
            for flag in ["stdin", "stdout", "stderr", "tty"] {
                if query.flag(flag) {
                    options.insert(flag.to_owned(), true.into());
                }
            }
            if !query.text("container").is_empty() {
                options.insert("container".to_owned(), query.text("container").into());
            }
        }
        Subresource::PortForward => {
            let ports = ports(query)?;
            if !ports.is_empty() {
                options.insert("ports".to_owned(), ports.into());
            }
        }
        _ => {
            let path = behind.unwrap_or_else(|| query.text("path"));
            if !path.is_empty() {
                options.insert("path".to_owned(), path.into());
            }
        }
    }
    if *subresource == Subresource::Exec {
        let command: Vec<&str> = query.all("command").collect();
        // It is written even when there is none.
        let command = if command.is_empty() { Value::Null } else { command.into() };
        options.insert("command".to_owned(), command);
    }
    Ok(Some(Value::Object(options)))
}

/// The ports of all parameters, each of which may be a list.
fn ports(query: &Query) -> Result<Vec<i32>, ApiError> {
    let read = |port: &str| {
        port.parse::<i32>().map_err(|_| {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let why = if is_number { "value out of range" } else { "invalid syntax" };
            ApiError::bad_request(format!(
                "cannot convert to []int32: strconv.ParseUint: parsing {port:?}: {why}"
            ))
        })
    };
    query.all("ports").flat_map(|list| list.split(',')).map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubewright_kinds::Proxied;

    fn options(subresource: &Subresource, query: &str, behind: Option<&str>) -> Value {
        of(subresource, &Query::parse(Some(query)), behind).unwrap().unwrap()
    }

    #[test]
    fn a_query_becomes_an_object() {
        assert_eq!(
            options(&Subresource::Exec, "command=ls&command=-l&stdout=false&stdin&container=a", None),
            json!({"kind": "PodExecOptions", "apiVersion": "v1", "stdin": true, "container": "a", "command": ["ls", "-l"]})
        );
        assert_eq!(options(&Subresource::Exec, "", None)["command"], Value::Null);
        assert_eq!(
            options(&Subresource::PortForward, "ports=80,82&ports=1", None)["ports"],
            json!([80, 82, 1])
        );
        let proxy = Subresource::Proxy(Proxied::Pod);
        assert_eq!(options(&proxy, "path=q", Some("/a/"))["path"], "/a/");
        assert_eq!(options(&proxy, "path=q", None)["path"], "q");
    }

    #[test]
    fn a_port_is_a_number() {
        let error = of(&Subresource::PortForward, &Query::parse(Some("ports=x")), None).unwrap_err();
        assert_eq!(
            error.message,
            "cannot convert to []int32: strconv.ParseUint: parsing \"x\": invalid syntax"
        );
    }

    #[test]
    fn a_log_is_only_read() {
        assert_eq!(of(&Subresource::Log, &Query::default(), None), Ok(None));
    }
}
