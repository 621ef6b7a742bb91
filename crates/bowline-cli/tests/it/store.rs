//! `bowline store`.

use crate::place::Place;

/// Replaces what differs from run to run.
fn without_numbers(text: &str) -> String {
    let mut masked = String::new();
    for part in text.split_inclusive(char::is_whitespace) {
        let number = part.trim().trim_start_matches(['+', '-']);
        let is_number = number.starts_with(|c: char| c.is_ascii_digit());
        masked.push_str(&if is_number { part.replace(part.trim(), "N") } else { part.to_owned() });
    }
    masked
}

#[test]
fn a_store_is_checked() {
    let place = Place::new();
    let (text, code) = place.run(&["store", "check", "sqlite:state.db"]);
    assert_eq!(code, Some(0), "{text}");
    expect_test::expect![[r#"
        ok       version       SQLite N
        ok       durability    survives the end of the process
                               `synchronous=full` in the URL also survives a power failure, and is slower
        ok       rows          N
        ok       write         N ms
        ok       read          N ms
        ok       clock offset  N ms
        ok       hints         connected
    "#]]
    .assert_eq(&without_numbers(&text));
}

#[test]
fn a_check_can_be_read_by_programs() {
    let place = Place::new();
    let (text, code) = place.run(&["store", "check", "memory:", "--json"]);
    assert_eq!(code, Some(0), "{text}");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["findings"][0]["name"], "durability");
    assert_eq!(report["findings"][0]["level"], "ok");
}

#[test]
fn what_is_wrong_is_said_without_the_password() {
    let place = Place::new();
    let check = |words: &[&str], expected: &str, expected_code: i32| {
        let (text, code) = place.run(words);
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("canary"), "{text}");
        assert_eq!(code, Some(expected_code), "{text}");
    };
    check(&["store", "check"], "name its URL as an argument or in BOWLINE_STORE_URL", 2);
    check(&["store", "check", "mysql://ann:canary@db"], "`mysql:` is not a store", 3);
    check(&["store", "check", "memory:", "--namespace", "a b"], "\"a b\" is not a namespace", 3);
    #[cfg(feature = "postgres")]
    check(&["store", "check", "postgres://ann:canary@127.0.0.1:1/db"], "cannot connect to PostgreSQL", 4);
    #[cfg(feature = "redis")]
    check(&["store", "check", "redis://:canary@127.0.0.1:1"], "cannot connect to Redis at 127.0.0.1:1", 4);
}

#[test]
fn a_store_is_sealed_again_with_a_new_key() {
    let place = Place::new();
    let (old, new) = ("11".repeat(32), "22".repeat(32));
    let rekey = |names: &[&str]| {
        let mut words = vec!["store", "rekey", "sqlite:state.db"];
        for name in names {
            words.extend(["--keys-env", name]);
        }
        let mut command = place.program(&words);
        command.env("OLD", &old).env("NEW", &new).env("SHORT", "canary");
        place.output(command)
    };
    // An empty store has nothing to seal.
    let (text, code) = rekey(&["OLD"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text, "0 records encrypted again, 0 were already encrypted with the first key\n");
    // Records of a server, sealed with the old key.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = format!("sqlite:{}", place.path("here/state.db").display());
    runtime.block_on(async {
        let keys = bowline_stores::key_ring([&old]).unwrap();
        let store = bowline_stores::StoreOptions::new(&url).keys(keys).open().await.unwrap();
        for number in 0..450 {
            let key = bowline_store::Key::new(format!("r/{number}")).unwrap();
            let put = bowline_store::Put::create(key, "value", std::time::Duration::from_secs(600));
            store.records().put(put).await.unwrap();
        }
    });
    let (text, code) = rekey(&["NEW"]);
    assert_eq!(code, Some(8), "{text}");
    assert!(text.contains("450 records cannot be decrypted with these keys"), "{text}");
    assert_eq!(text.matches("not changed: r/").count(), 20, "{text}");
    let (text, code) = rekey(&["NEW", "OLD"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text, "450 records encrypted again, 0 were already encrypted with the first key\n");
    let (text, code) = rekey(&["NEW"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text, "0 records encrypted again, 450 were already encrypted with the first key\n");
    for (name, expected) in [("NONE", "the variable `NONE` is not set"), ("SHORT", "key 1 is not 32 bytes")] {
        let (text, code) = rekey(&[name]);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains(expected) && !text.contains("canary"), "{text}");
    }
}
