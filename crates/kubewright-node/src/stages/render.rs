//! Text from a template and an object.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::template::{Command, Node, Operand, Pipe, Template};

/// Functions of kwok for templates.
pub(super) trait TemplateFuncs {
    fn now(&self) -> String;
    fn start_time(&self) -> String;
    /// The address of the node that the object is.
    fn node_ip(&self) -> String;
    /// The address of a node.
    fn node_ip_with(&self, node: &str) -> String;
    /// The address of the pod that the object is, on its node or the node's own network.
    fn pod_ip_with(&self, node: &str, host_network: bool) -> String;
}

/// The most text that a template may make.
const LONGEST: usize = 4 << 20;

/// The text that `template` makes of `object`.
///
/// # Errors
/// A function that is not known, wrong arguments, too much text.
pub(super) fn render(
    template: &Template,
    object: &Value,
    funcs: &dyn TemplateFuncs,
) -> Result<String, String> {
    let mut renderer = Renderer { root: object, funcs, scopes: vec![BTreeMap::new()], text: String::new() };
    renderer.nodes(&template.0, object)?;
    Ok(renderer.text)
}

struct Renderer<'a> {
    root: &'a Value,
    funcs: &'a dyn TemplateFuncs,
    scopes: Vec<BTreeMap<String, Value>>,
    text: String,
}

impl Renderer<'_> {
    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<(), String> {
        for node in nodes {
            self.node(node, dot)?;
            if self.text.len() > LONGEST {
                return Err("the template makes too much text".into());
            }
        }
        Ok(())
    }

    /// Nodes with variables of their own.
    fn scope(
        &mut self,
        nodes: &[Node],
        dot: &Value,
        variables: BTreeMap<String, Value>,
    ) -> Result<(), String> {
        self.scopes.push(variables);
        let done = self.nodes(nodes, dot);
        self.scopes.pop();
        done
    }

    fn node(&mut self, node: &Node, dot: &Value) -> Result<(), String> {
        match node {
            Node::Text(text) => self.text.push_str(text),
            Node::Write(pipe) => {
                let value = self.pipe(pipe, dot)?;
                self.text.push_str(&written(&value));
            }
            Node::Declare(name, pipe) => {
                let value = self.pipe(pipe, dot)?;
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(name.clone(), value);
                }
            }
            Node::Assign(name, pipe) => {
                let value = self.pipe(pipe, dot)?;
                let known = self.scopes.iter_mut().rev().find_map(|scope| scope.get_mut(name));
                *known.ok_or_else(|| format!("undefined variable ${name}"))? = value;
            }
            Node::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if is_true(&self.pipe(condition, dot)?) {
                        return self.scope(body, dot, BTreeMap::new());
                    }
                }
                return self.scope(otherwise, dot, BTreeMap::new());
            }
            Node::With { value, body, otherwise } => {
                let value = self.pipe(value, dot)?;
                return match is_true(&value) {
                    true => self.scope(body, &value, BTreeMap::new()),
                    false => self.scope(otherwise, dot, BTreeMap::new()),
                };
            }
            Node::Range { index, item, over, body, otherwise } => {
                let items = match self.pipe(over, dot)? {
                    Value::Array(all) => {
                        all.into_iter().enumerate().map(|(at, one)| (json!(at), one)).collect()
                    }
                    Value::Object(all) => all.into_iter().map(|(key, one)| (json!(key), one)).collect(),
                    Value::Null => Vec::new(),
                    other => return Err(format!("range can't iterate over {other}")),
                };
                if items.is_empty() {
                    return self.scope(otherwise, dot, BTreeMap::new());
                }
                for (at, one) in items {
                    let mut variables = BTreeMap::new();
                    variables.extend(index.clone().map(|name| (name, at)));
                    variables.extend(item.clone().map(|name| (name, one.clone())));
                    self.scope(body, &one, variables)?;
                }
            }
        }
        Ok(())
    }

    fn pipe(&self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let mut result = None;
        for command in &pipe.0 {
            result = Some(match (command, result) {
                (Command::Value(operand), None) => self.operand(operand, dot)?,
                (Command::Value(_), Some(_)) => return Err("a pipe leads to a value".into()),
                (Command::Call(name, arguments), before) => {
                    let mut values: Vec<Value> =
                        arguments.iter().map(|one| self.operand(one, dot)).collect::<Result<_, _>>()?;
                    values.extend(before);
                    self.call(name, &values)?
                }
            });
        }
        Ok(result.unwrap_or_default())
    }

    fn operand(&self, operand: &Operand, dot: &Value) -> Result<Value, String> {
        match operand {
            Operand::Dot(fields) => Ok(at(dot, fields)),
            Operand::Variable(name, fields) if name.is_empty() => Ok(at(self.root, fields)),
            Operand::Variable(name, fields) => {
                let known = self.scopes.iter().rev().find_map(|scope| scope.get(name));
                known.map(|value| at(value, fields)).ok_or_else(|| format!("undefined variable ${name}"))
            }
            Operand::Literal(value) => Ok(value.clone()),
            Operand::Pipe(pipe) => self.pipe(pipe, dot),
            Operand::Function(name) => self.call(name, &[]),
        }
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        let text = |index: usize| arguments.get(index).and_then(Value::as_str).unwrap_or_default();
        let first = || arguments.first().cloned().unwrap_or_default();
        let list = |address: String| if address.is_empty() { json!([]) } else { json!([address]) };
        Ok(match name {
            "Now" => json!(self.funcs.now()),
            "StartTime" => json!(self.funcs.start_time()),
            "Version" => json!(concat!("kubewright-v", env!("CARGO_PKG_VERSION"))),
            "NodeConditions" => node_conditions(),
            "NodeIP" => json!(self.funcs.node_ip()),
            "NodeIPs" => list(self.funcs.node_ip()),
            "NodeName" => at(self.root, &["metadata".to_owned(), "name".to_owned()]),
            "NodePort" => json!(0),
            "NodeIPWith" => json!(self.funcs.node_ip_with(text(0))),
            "NodeIPsWith" => list(self.funcs.node_ip_with(text(0))),
            "PodIPWith" | "PodIPsWith" => {
                let host_network = arguments.get(1).is_some_and(is_true);
                let address = self.funcs.pod_ip_with(text(0), host_network);
                if name == "PodIPWith" { json!(address) } else { list(address) }
            }
            "Quote" => match first() {
                Value::String(text) => json!(Value::String(text).to_string()),
                other => json!(Value::String(other.to_string()).to_string()),
            },
            "YAML" => json!(yaml(&first(), arguments.get(1).and_then(Value::as_u64).unwrap_or_default())?),
            "or" => {
                arguments.iter().find(|one| is_true(one)).or(arguments.last()).cloned().unwrap_or_default()
            }
            "and" => {
                arguments.iter().find(|one| !is_true(one)).or(arguments.last()).cloned().unwrap_or_default()
            }
            "not" => json!(!is_true(&first())),
            "eq" => json!(arguments.get(1..).is_some_and(|others| others.contains(&first()))),
            "ne" => json!(arguments.get(1) != arguments.first()),
            "len" => json!(match first() {
                Value::Array(all) => all.len(),
                Value::Object(all) => all.len(),
                Value::String(text) => text.len(),
                _ => return Err("len of what has none".into()),
            }),
            "index" => {
                let mut value = first();
                for key in arguments.get(1..).unwrap_or_default() {
                    value = match key {
                        Value::String(key) => value.get(key).cloned(),
                        Value::Number(at) => at
                            .as_u64()
                            .and_then(|at| usize::try_from(at).ok())
                            .and_then(|at| value.get(at).cloned()),
                        _ => None,
                    }
                    .unwrap_or_default();
                }
                value
            }
            "dict" => {
                let pairs = arguments.chunks(2);
                let entry = |pair: &[Value]| {
                    (
                        pair[0].as_str().unwrap_or_default().to_owned(),
                        pair.get(1).cloned().unwrap_or_default(),
                    )
                };
                Value::Object(pairs.map(entry).collect())
            }
            "default" => match arguments {
                [_, value] if is_true(value) => value.clone(),
                [default, ..] => default.clone(),
                [] => Value::Null,
            },
            "printf" => json!(printf(text(0), arguments.get(1..).unwrap_or_default())?),
            "print" => json!(arguments.iter().map(written).collect::<String>()),
            _ => return Err(format!("function {name:?} is not supported")),
        })
    }
}

/// Go's idea of what is not empty.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_true) => *is_true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => !all.is_empty(),
    }
}

fn at(value: &Value, fields: &[String]) -> Value {
    fields.iter().try_fold(value, |value, field| value.get(field)).cloned().unwrap_or_default()
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn printf(format: &str, arguments: &[Value]) -> Result<String, String> {
    let mut arguments = arguments.iter();
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let verb = rest[at + 1..].chars().next().ok_or("a % says nothing")?;
        match verb {
            '%' => text.push('%'),
            's' | 'v' | 'd' => text.push_str(&arguments.next().map(written).unwrap_or_default()),
            'q' => text.push_str(&json!(arguments.next().map(written).unwrap_or_default()).to_string()),
            _ => return Err(format!("%{verb} is not supported")),
        }
        rest = &rest[at + 1 + verb.len_utf8()..];
    }
    Ok(text + rest)
}

/// The value as YAML, each line further to the right by twice `indent`.
fn yaml(value: &Value, indent: u64) -> Result<String, String> {
    let text = serde_saphyr::to_string(value).map_err(|error| error.to_string())?;
    if indent == 0 {
        return Ok(text);
    }
    let pad = format!("\n{}", " ".repeat(usize::try_from(indent.min(32) * 2).unwrap_or_default()));
    Ok(format!("\n{text}").replace('\n', &pad))
}

fn node_conditions() -> Value {
    json!([
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"},
        {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory",
            "message": "kubelet has sufficient memory available"},
        {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure",
            "message": "kubelet has no disk pressure"},
        {"type": "PIDPressure", "status": "False", "reason": "KubeletHasSufficientPID",
            "message": "kubelet has sufficient PID available"},
        {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
            "message": "RouteController created a route"},
    ])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A node `10.0.0.1` with a pod `10.128.0.1`.
    pub(crate) struct FakeFuncs;

    impl TemplateFuncs for FakeFuncs {
        fn now(&self) -> String {
            "2026-01-01T00:00:00Z".into()
        }
        fn start_time(&self) -> String {
            self.now()
        }
        fn node_ip(&self) -> String {
            "10.0.0.1".into()
        }
        fn node_ip_with(&self, _: &str) -> String {
            self.node_ip()
        }
        fn pod_ip_with(&self, _: &str, host_network: bool) -> String {
            if host_network { self.node_ip() } else { "10.128.0.1".into() }
        }
    }

    fn rendered(template: &str, object: &Value) -> Result<String, String> {
        render(&Template::parse(template)?, object, &FakeFuncs)
    }

    #[test]
    fn what_kwoks_stages_say_is_rendered() {
        let pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "kind": "Pod"});
        for (template, wanted) in [
            ("{{ .kind | Quote }}", "\"Pod\""),
            ("{{ range $i, $c := .spec.containers }}{{ $i }}{{ $c.name }}{{ end }}", "0a1b"),
            ("{{ range .spec.initContainers }}x{{ else }}none{{ end }}", "none"),
            ("{{ with .status }}{{ .x }}{{ else }}{{ .kind }}{{ end }}", "Pod"),
            ("{{ if eq .kind \"Node\" }}n{{ else if eq .kind \"Pod\" }}p{{ else }}x{{ end }}", "p"),
            ("{{ $a := false }}{{ range .spec.containers }}{{ $a = true }}{{ end }}{{ $a }}", "true"),
            ("{{ or .status.phase \"\" }}", ""),
            ("{{ $x := or .a dict }}{{ or ( index $x \"k\" ) 1 }}", "1"),
            ("{{ $r := . }}{{ range .spec.containers }}{{ $r.kind }}{{ end }}", "PodPod"),
            ("{{ printf \"kwok-%s\" .kind }}", "kwok-Pod"),
            ("{{ with NodeIPsWith .n }}{{ index . 0 }}{{ end }}", "10.0.0.1"),
            ("{{ PodIPWith .n ( or .spec.hostNetwork false ) }}", "10.128.0.1"),
            ("{{ .missing }}", "<no value>"),
            ("{{ or .b `\"\"` }}", "\"\""),
        ] {
            assert_eq!(rendered(template, &pod).as_deref(), Ok(wanted), "{template}");
        }
    }

    #[test]
    fn what_is_not_known_says_so() {
        assert_eq!(
            rendered("{{ env \"HOME\" }}", &json!({})),
            Err("function \"env\" is not supported".into())
        );
        assert_eq!(rendered("{{ $x }}", &json!({})), Err("undefined variable $x".into()));
    }
}
