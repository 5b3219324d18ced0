//! What a reader of a page does: the commands of its `console` blocks, and the files that it shows whole.

/// A part of a page that asks for something.
#[derive(Debug, PartialEq)]
pub(crate) enum Block {
    /// A file with this name and text is written (` ```rust file=src/at.rs `).
    File { name: String, text: String },
    /// These are run, one after another (` ```console `).
    Commands(Vec<Command>),
}

/// A command, and what the page says that it says.
#[derive(Debug, PartialEq)]
pub(crate) struct Command {
    /// Where on the page it is, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// Its standard output and error; a first line `? 1` is the exit code where it is not 0.
    pub(crate) expected: String,
    /// It is run again until it says this (` ```console again `), for what a cluster does in its own time.
    pub(crate) again: bool,
}

/// The blocks of a page in Markdown.
///
/// # Errors
/// With the line of a block that says something before its first command, or does not end.
pub(crate) fn read(page: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let Some(information) = line.strip_prefix("```") else { continue };
        let mut text = Vec::new();
        loop {
            match lines.next() {
                Some(("```", _)) => break,
                Some(line) => text.push(line),
                None => return Err(format!("line {number}: the block does not end")),
            }
        }
        let mut words = information.split(' ');
        let language = words.next();
        let attribute = words.next();
        if language == Some("console") {
            blocks.push(Block::Commands(commands(&text, attribute == Some("again"))?));
        } else if let Some(name) = attribute.and_then(|word| word.strip_prefix("file=")) {
            let text = text.iter().flat_map(|(line, _)| [line, "\n"]).collect();
            blocks.push(Block::File { name: name.to_owned(), text });
        }
    }
    Ok(blocks)
}

fn commands(block: &[(&str, usize)], again: bool) -> Result<Vec<Command>, String> {
    let mut commands: Vec<Command> = Vec::new();
    for (line, number) in block {
        if let Some(text) = line.strip_prefix("$ ") {
            commands.push(Command { line: *number, text: text.to_owned(), expected: String::new(), again });
            continue;
        }
        let command = commands.last_mut().ok_or_else(|| format!("line {number}: output of no command"))?;
        match line.strip_prefix("> ") {
            Some(more) if command.expected.is_empty() => command.text += &format!("\n{more}"),
            _ => command.expected += &format!("{line}\n"),
        }
    }
    Ok(commands)
}

#[test]
fn a_page_is_its_commands_and_files_in_order() {
    let page = "\
Text.
```console
$ one
said
more
$ two \\
> and on
```
```yaml
only: shown
```
```yaml file=a/b.yaml
a: 1
```
```console again
$ three
```
";
    let command = |line, text: &str, expected: &str, again| Command {
        line,
        text: text.to_owned(),
        expected: expected.to_owned(),
        again,
    };
    assert_eq!(
        read(page),
        Ok(vec![
            Block::Commands(vec![
                command(3, "one", "said\nmore\n", false),
                command(6, "two \\\nand on", "", false)
            ]),
            Block::File { name: "a/b.yaml".to_owned(), text: "a: 1\n".to_owned() },
            Block::Commands(vec![command(16, "three", "", true)]),
        ])
    );
    assert_eq!(read("```console\nsaid\n```\n"), Err("line 2: output of no command".to_owned()));
    assert_eq!(read("```console\n$ a\n"), Err("line 1: the block does not end".to_owned()));
}
