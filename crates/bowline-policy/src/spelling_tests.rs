//! Spellings of files and URLs.

use super::*;

#[test]
fn every_spelling_of_a_file_has_its_plain_form() {
    for text in [
        "file:///srv/secret",
        "FILE:///srv/secret",
        "file:/srv/secret",
        "file:srv/secret",
        "file://localhost/srv/secret",
        "file://LocalHost./srv/secret",
        "file://127.0.0.1/srv/secret",
        "file:////srv/secret",
        "file:///srv//secret",
        "file:///srv/./secret",
        "file:///./srv/secret",
        "file:///srv/secret/",
        "file:///srv/secret/.",
        "file:///srv/x/../secret",
        "file:///srv/%73ecret",
        "file:///srv/%2573ecret",
        "file:///srv%2Fsecret",
        "file:///srv/%2e/secret",
        "file:///srv/x/%2e%2E/secret",
        "file:///srv\\secret",
        "file:\\\\\\srv\\secret",
        "file:///srv%5Csecret",
        "file:///srv/secret?x",
        "file:///srv/secret#x",
        "file:///srv/secret.",
        "file:///srv/secret%20",
        "file:///srv./secret..",
        "file://srv/secret",
        " file:///srv/secret",
        "fi\tle:///srv/sec\nret",
        "/srv/secret",
        "//srv/secret",
        "/srv//secret/",
        "/srv/./secret",
        "/x/../srv/secret",
        "/../srv/secret",
        "\\srv\\secret",
        "/srv/%73ecret",
        "/srv/secret ",
    ] {
        let forms = forms(text);
        for plain in ["file:///srv/secret", "/srv/secret"] {
            assert!(forms.iter().any(|form| form == plain), "{text}: {plain} is not in {forms:?}");
        }
    }
    for text in
        ["C:\\secret\\a", "file:///C:/secret/a", "file:///C|/secret/a", "file://localhost/C:/secret//a"]
    {
        let forms = forms(text);
        for plain in ["C:/secret/a", "file:///C:/secret/a"] {
            assert!(forms.iter().any(|form| form == plain), "{text}: {plain} is not in {forms:?}");
        }
    }
}

#[test]
fn other_files_have_other_forms() {
    for text in
        ["file:///srv/secrets", "file://other/srv/secret", "/srv/a/secret", "secret", "file:///srv/.secret"]
    {
        let plain = if text.contains("other") { "file:///srv/secret2" } else { "file:///srv/secret" };
        assert!(!forms(text).iter().any(|form| form == plain), "{text}");
    }
    assert_eq!(forms("plain text"), ["plain text"]);
}

#[test]
fn every_spelling_of_a_url_has_its_plain_form() {
    for text in [
        "https://example.com/secret",
        "HTTPS://EXAMPLE.com/secret",
        "https://example.com:443/secret",
        "https://example.com:/secret",
        "https://example.com./secret",
        "https://user:x@example.com/secret",
        "https://ex%61mple.com/secret",
        "https://example.com//secret",
        "https://example.com/./secret/",
        "https://example.com/x/../%73ecret?y",
        "https:\\\\example.com\\secret",
        "https:example.com/secret",
        "https:/example.com/secret",
        "https:///example.com/secret",
        "https://example.com:0443/secret",
    ] {
        let forms = forms(text);
        assert!(forms.iter().any(|form| form == "https://example.com/secret"), "{text}: {forms:?}");
    }
    for host in
        ["127.1", "2130706433", "0x7f.1", "0x7f000001", "017700000001", "[::ffff:127.0.0.1]", "127.0.0.1."]
    {
        let forms = forms(&format!("http://{host}:08080/secret"));
        assert!(forms.iter().any(|form| form == "http://127.0.0.1:8080/secret"), "{host}: {forms:?}");
    }
    for host in ["127.0.0.256", "1.2.3.4.5", "4294967296", "a.1", "[::1]"] {
        assert_eq!(plain_address(host), None, "{host}");
    }
    assert!(forms("https://example.com").iter().any(|form| form == "https://example.com/"));
    assert!(forms("Note:///a//%62").iter().any(|form| form == "note:///a/b"));
    assert!(forms("urn:x%3Ay").iter().any(|form| form == "urn:x:y"));
}

#[test]
fn ambiguous_json_is_found() {
    for uri in [
        "file:///srv/../etc",
        "file:///srv/%2e%2e/etc",
        "file:///srv/%252e%252e/etc",
        "file:///srv\\..\\etc",
        "file:///srv/a%00b",
        "file:///srv/a%0Ab",
        "file:///srv/%zz",
        "file:///srv/%",
        "file:///srv/%c0%af",
    ] {
        assert!(ambiguity(uri).is_some(), "{uri}");
    }
    for uri in ["file:///srv/a..b", "file:///srv/%c3%a4?x=../y", "note:///a%2Fb", "file:///srv/..."] {
        assert_eq!(ambiguity(uri), None, "{uri}");
    }
}

#[test]
fn a_parent_step_is_found_however_it_is_hidden() {
    for text in ["/a/../b", "/a/%2e%2e/b", "/a/%252e%252e/b", "/a/.\t./b", "/a/.%0a./b", "a\\..\\b"] {
        assert!(may_have_parent_step(text), "{text:?}");
    }
    for text in ["/a/b", "/a..b", "/a/.../b", "plain"] {
        assert!(!may_have_parent_step(text), "{text:?}");
    }
}

#[test]
fn pieces_of_patterns_are_written_as_forms_are() {
    let plain = |text: &str| plain_pieces(&[text.to_owned()]).concat();
    for (pattern, expected) in [
        ("FILE://localhost/srv/%73ecret", "file:///srv/secret"),
        ("file:/srv//secret/", "file:///srv/secret"),
        ("https://Example.com:443/a/./b", "https://example.com/a/b"),
        ("/srv/", "/srv"),
        ("/", "/"),
        ("plain", "plain"),
    ] {
        assert_eq!(plain(pattern), expected, "{pattern}");
    }
    let pieces = ["https://EX".to_owned(), ".com/A//".to_owned()];
    assert_eq!(plain_pieces(&pieces), ["https://ex", ".com/A/"]);
}
