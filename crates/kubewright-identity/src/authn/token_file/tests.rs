use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Vec<(String, User)> {
    let tokens = parse(text, "/t.csv").unwrap();
    tokens.into_iter().map(|(token, user)| (token.reveal().to_owned(), user)).collect()
}

fn user(name: &str, uid: &str, groups: &[&str]) -> User {
    User { uid: uid.to_owned(), ..User::new(name, groups.iter().copied()) }
}

#[test]
fn a_line_tells_a_token_its_user_and_its_groups() {
    assert_eq!(
        read("t1,alice,1\r\n\nt2,bob,2,\"dev,ops\",more\nt3,\"c \"\"x\"\"\",3,one"),
        [
            ("t1".to_owned(), user("alice", "1", &[])),
            ("t2".to_owned(), user("bob", "2", &["dev", "ops"])),
            ("t3".to_owned(), user("c \"x\"", "3", &["one"])),
        ]
    );
    assert_eq!(read(""), []);
    assert_eq!(read("t,\"two\nlines\",1\n"), [("t".to_owned(), user("two\nlines", "1", &[]))]);
}

#[test]
fn of_several_lines_for_a_token_the_last_counts_and_one_without_is_skipped() {
    assert_eq!(read("t,a,1\nt,b,2\n,c,3\n"), [("t".to_owned(), user("b", "2", &[]))]);
}

/// As `encoding/csv` of Go 1.24 and `tokenfile.NewCSV` say it.
#[test]
fn a_file_that_tells_no_tokens_says_why() {
    for (text, why) in [
        ("a,b\n", "token file '/t.csv' must have at least 3 columns (token, user name, user uid), found 2"),
        ("a,b\"c,d\n", "parse error on line 1, column 4: bare \" in non-quoted-field"),
        ("a,b,c\na,\"b\"x,c\n", "parse error on line 2, column 5: extraneous or missing \" in quoted-field"),
        ("a,\"é\"x,c\n", "parse error on line 1, column 6: extraneous or missing \" in quoted-field"),
        (
            "a,\"b\nc,d\n",
            "record on line 1; parse error on line 2, column 5: extraneous or missing \" in quoted-field",
        ),
        ("\"a", "parse error on line 1, column 3: extraneous or missing \" in quoted-field"),
    ] {
        assert_eq!(parse(text, "/t.csv").unwrap_err().to_string(), why, "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a,\"\n\r é]{0,40}") {
        let _ = parse(&text, "/t.csv");
    }
}
