//! The columns of tables, from what a server answers to a list that is asked for as a table: `columns.txt`.

use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::Value;

/// A section for each resource, a line for each column: `name|type|format|priority|description`.
///
/// # Errors
/// When an answer is no table.
pub(super) fn write(tables: &[(String, Value)]) -> Result<String> {
    let mut text = String::from("#\n# [group/version resource]\n# name|type|format|priority|description\n");
    for (resource, table) in tables {
        writeln!(text, "[{resource}]").expect("a String takes it");
        let columns =
            table["columnDefinitions"].as_array().with_context(|| format!("no table of {resource}"))?;
        for column in columns {
            let word = |key: &str| column[key].as_str().unwrap_or_default().replace('\n', "\\n");
            let line = [
                word("name"),
                word("type"),
                word("format"),
                column["priority"].to_string(),
                word("description"),
            ];
            writeln!(text, "{}", line.join("|")).expect("a String takes it");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_column_is_a_line() {
        let column = json!({"name": "Name", "type": "string", "format": "name", "priority": 0, "description": "The name"});
        let table = json!({"columnDefinitions": [column]});
        let text = write(&[("v1 pods".to_owned(), table)]).unwrap();
        assert!(text.ends_with("[v1 pods]\nName|string|name|0|The name\n"));
        assert!(write(&[("v1 pods".to_owned(), json!({}))]).is_err());
    }
}
