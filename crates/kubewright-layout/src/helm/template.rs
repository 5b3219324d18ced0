//! One object with holes in it, which a chart fills.

use serde_json::{Map, Value};

use crate::{Error, RELEASE_NAMESPACE, files::yaml};

/// An object of a chart: written as YAML with a word in each hole, in whose place an expression is put afterwards, so that
/// what is not a hole is what the operator said.
pub(super) struct Template {
    object: Value,
    holes: Vec<Hole>,
    conditions: Vec<String>,
}

/// What is put where a hole is.
enum Hole {
    /// In place of the value.
    Value(String),
    /// In place of the line, and as far to the right as it; `@2` stands for two columns more.
    Line(String),
}

impl Template {
    pub(super) fn of(object: &Value) -> Self {
        Self { object: object.clone(), holes: Vec::new(), conditions: Vec::new() }
    }

    /// It is there only when this is true too.
    pub(super) fn when(mut self, condition: &str) -> Self {
        self.conditions.push(condition.to_owned());
        self
    }

    /// Puts an expression in place of the value at a pointer, where there is one.
    pub(super) fn inline(&mut self, pointer: &str, expression: &str) {
        let word = self.word(Hole::Value(expression.to_owned()));
        if let Some(value) = self.object.pointer_mut(pointer) {
            *value = word.into();
        }
    }

    /// Puts lines in place of a key (and of its value, if it is there) in the map at a pointer.
    pub(super) fn lines(&mut self, pointer: &str, key: &str, lines: &str) {
        let word = self.word(Hole::Line(lines.to_owned()));
        if let Some(Value::Object(map)) = self.object.pointer_mut(pointer) {
            map.insert(key.to_owned(), word.into());
        }
    }

    /// Keeps a key in the map at a pointer only when a condition is true.
    pub(super) fn only_when(&mut self, pointer: &str, key: &str, condition: &str) {
        let Some(value) = self.object.pointer(pointer).and_then(|map| map.get(key)) else { return };
        let mut map = Map::new();
        map.insert(key.to_owned(), value.clone());
        let Ok(text) = text_of(&Value::Object(map)) else { return };
        self.lines(pointer, key, &format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"));
    }

    /// Adds annotations under conditions.
    pub(super) fn annotations(&mut self, added: &[(&str, Value)]) {
        let added: Vec<_> =
            added.iter().filter(|(_, map)| map.as_object().is_some_and(|map| !map.is_empty())).collect();
        if added.is_empty() {
            return;
        }
        let indented = |value: &Value| indent(&text_of(value).unwrap_or_default(), 2);
        let mut lines = String::from("annotations:\n");
        let own = self.object["metadata"]["annotations"].clone();
        if own.is_object() {
            lines += &indented(&own);
        }
        for (condition, map) in &added {
            lines += &format!("  {{{{- if {condition} }}}}\n{}  {{{{- end }}}}\n", indented(map));
        }
        if !own.is_object() {
            let conditions: Vec<String> =
                added.iter().map(|(condition, _)| format!("({condition})")).collect();
            lines = format!("{{{{- if or {} }}}}\n{lines}{{{{- end }}}}\n", conditions.join(" "));
        }
        self.lines("/metadata", "annotations", &lines);
    }

    fn word(&mut self, hole: Hole) -> String {
        self.holes.push(hole);
        word(self.holes.len() - 1)
    }

    /// The text of it, as part of a file.
    pub(super) fn text(&self) -> Result<String, Error> {
        let mut text = String::new();
        for line in text_of(&self.object)?.lines() {
            text += &self.filled(line);
        }
        let mut text = format!("---\n{text}");
        for condition in self.conditions.iter().rev() {
            text = format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n");
        }
        Ok(text)
    }

    fn filled(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (number, hole) in self.holes.iter().enumerate() {
            let word = word(number);
            if !line.contains(&word) {
                continue;
            }
            match hole {
                Hole::Value(expression) => line = line.replace(&word, expression),
                Hole::Line(lines) => {
                    // Where the key is, which in a list stands behind a dash.
                    let key = line.find(|c: char| c != ' ' && c != '-').unwrap_or_default();
                    let dash = line[..key].contains('-').then(|| format!("{}\n", line[..key].trim_end()));
                    return dash.unwrap_or_default() + &columns(&indent(lines, key), key);
                }
            }
        }
        line + "\n"
    }
}

fn word(number: usize) -> String {
    format!("kubewright-hole-{number}-")
}

/// YAML of which Helm takes nothing for its own, with the namespace of the release.
pub(super) fn text_of(value: &Value) -> Result<String, Error> {
    let text = yaml(value)?.replace("{{", "{{ \"{{\" }}");
    // As a whole it is quoted: it may look like a number.
    let text = [": ", "- "].iter().fold(text, |text, before| {
        let whole = format!("{before}{RELEASE_NAMESPACE}\n");
        text.replace(&whole, &format!("{before}{{{{ .Release.Namespace | quote }}}}\n"))
    });
    Ok(text.replace(RELEASE_NAMESPACE, "{{ .Release.Namespace }}"))
}

/// Each line that much further to the right.
pub(super) fn indent(text: &str, columns: usize) -> String {
    let space = " ".repeat(columns);
    text.lines().map(|line| format!("{space}{line}\n")).collect()
}

/// Numbers of columns, for those that stand for them.
fn columns(text: &str, base: usize) -> String {
    (0..9).fold(text.to_owned(), |text, more| {
        text.replace(&format!("nindent @{more}"), &format!("nindent {}", base + more))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_hole_is_written_as_it_was_said() {
        let mut template = Template::of(&json!({
            "metadata": {"name": "a", "namespace": RELEASE_NAMESPACE},
            "spec": {"image": "x", "args": [format!("--in={RELEASE_NAMESPACE}/a"), RELEASE_NAMESPACE, "{{ no template }}"]},
        }));
        template.inline("/spec/image", "{{ .Values.image }}");
        template.lines(
            "/spec",
            "size",
            "{{- with .Values.size }}\nsize:\n  {{- toYaml . | nindent @2 }}\n{{- end }}\n",
        );
        let text = template.when(".Values.on").text().expect("YAML");
        let wanted = "\
{{- if .Values.on }}
---
metadata:
  name: a
  namespace: {{ .Release.Namespace | quote }}
spec:
  args:
  - --in={{ .Release.Namespace }}/a
  - {{ .Release.Namespace | quote }}
  - \"{{ \"{{\" }} no template }}\"
  image: {{ .Values.image }}
  {{- with .Values.size }}
  size:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
";
        assert_eq!(text, wanted);
    }
}
