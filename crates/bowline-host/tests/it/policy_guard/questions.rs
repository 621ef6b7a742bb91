//! Questions of servers: sampling, forms, URLs and roots.

use super::*;

fn ask_model() -> CreateMessageParams {
    CreateMessageParams::new(vec![SamplingMessage::user("hello")], 10_u64)
}

fn answer(text: &str) -> CreateMessageResult {
    CreateMessageResult::new(Role::Assistant, text, "m")
}

#[tokio::test]
async fn sampling_is_approved_edited_and_its_answer_reviewed() {
    // proves: SAMP-29, SAMP-31, SAMP-32, SEC-05
    // V-103
    let (gate, builder) = scripted([]);
    let guard = builder.build();
    let edited = CreateMessageParams::new(vec![SamplingMessage::user("hi")], 5_u64);
    gate.push(Verdict::edited(Edit::Request(Box::new(edited.clone()))));
    let sampling = guard.sample(&FILES, ask_model()).await.unwrap();
    assert_eq!(sampling.request, edited);
    gate.push(Verdict::edited(Edit::Result(Box::new(answer("less")))));
    assert_eq!(guard.sampled(&FILES, &sampling, answer("more")).await.unwrap(), answer("less"));
    gate.push(Verdict::decline());
    let refusal = guard.sampled(&FILES, &sampling, answer("more")).await.unwrap_err();
    assert_eq!(refusal.kind(), RefusalKind::Declined);
    assert_eq!(guard.sample(&FILES, ask_model()).await.unwrap_err().kind(), RefusalKind::Cancelled);
    // An answer to another question is none.
    gate.push(Verdict::edited(Edit::Form(RawMap::new())));
    assert_eq!(guard.sample(&FILES, ask_model()).await.unwrap_err().kind(), RefusalKind::Unsafe);
    // Who says yes to all that comes does not look at each answer.
    gate.push(Verdict::allow_for(Scope::Run, None));
    gate.take_asked();
    for _ in 0..2 {
        let sampling = guard.sample(&FILES, ask_model()).await.unwrap();
        assert_eq!(guard.sampled(&FILES, &sampling, answer("a")).await.unwrap(), answer("a"));
    }
    assert_eq!(gate.take_asked().len(), 1);
    let other = Facts { server: "mail", ..FILES };
    assert_eq!(guard.sample(&other, ask_model()).await.unwrap_err().kind(), RefusalKind::Cancelled);
}

#[tokio::test]
async fn forms_are_filled_in_by_people_only_and_never_ask_for_secrets() {
    // proves: ELIF-22, ELIF-31
    // V-103
    let (gate, builder) = scripted([]);
    let guard = builder.policy(Policy::new([Rule::allow().action(Action::Form)])).build();
    let schema = || ElicitSchema::new().required_field("name", StringSchema::new().min_length(2_u64));
    let form = || ElicitParams::form("Who?", schema());
    let filled = |text: &str| RawMap::from([("name", RawJson::of(text).unwrap())]);
    // A rule that allows does not answer.
    assert_eq!(guard.elicit(&FILES, form()).await.unwrap().action, ElicitAction::Cancel);
    gate.push(Verdict::edited(Edit::Form(filled("Ada"))));
    let result = guard.elicit(&FILES, form()).await.unwrap();
    assert_eq!((result.action, result.content), (ElicitAction::Accept, Some(filled("Ada"))));
    for verdict in [Verdict::edited(Edit::Form(filled("A"))), Verdict::allow()] {
        gate.push(verdict);
        assert_eq!(guard.elicit(&FILES, form()).await.unwrap_err().kind(), RefusalKind::Unsafe);
    }
    gate.push(Verdict::decline());
    assert_eq!(guard.elicit(&FILES, form()).await.unwrap().action, ElicitAction::Decline);
    gate.take_asked();
    let other = Facts { server: "mail", ..FILES };
    for schema in [
        ElicitSchema::new().field("password", StringSchema::new()),
        ElicitSchema::new().field("x", StringSchema::new().title("Your API key")),
        ElicitSchema::new().field("x", StringSchema::new().format(StringFormat::Other("password".into()))),
        (0..101).fold(ElicitSchema::new(), |schema, n| schema.field(format!("f{n}"), StringSchema::new())),
    ] {
        let refusal = guard.elicit(&other, ElicitParams::form("Hello", schema)).await.unwrap_err();
        assert_eq!(refusal.kind(), RefusalKind::Unsafe, "{refusal}");
    }
    guard.set_policy(Policy::new([Rule::deny().server("mail")]));
    assert_eq!(guard.elicit(&other, form()).await.unwrap().action, ElicitAction::Decline);
    assert_eq!(gate.take_asked(), []);
}

/// Notes what it would open.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Opener for Notes {
    fn open<'a>(&'a self, url: &'a ShownUrl) -> BoxFuture<'a, std::io::Result<()>> {
        self.0.lock().unwrap().push(url.as_str().to_owned());
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn urls_are_opened_only_after_consent() {
    // proves: ELIU-21
    // V-103
    let (gate, builder) = scripted([]);
    let opened = Notes::default();
    let guard = builder
        .policy(Policy::new([
            Rule::deny().action(Action::Visit).tool("*evil*"),
            Rule::allow().action(Action::Visit),
        ]))
        .opener(opened.clone())
        .build();
    let visit = |url: &str| ElicitParams::url("Log in", url);
    let page = "https://example.com/login";
    assert_eq!(guard.elicit(&FILES, visit(page)).await.unwrap().action, ElicitAction::Cancel);
    gate.push(Verdict::decline());
    assert_eq!(guard.elicit(&FILES, visit(page)).await.unwrap().action, ElicitAction::Decline);
    assert_eq!(
        guard.elicit(&FILES, visit("https://evil.example")).await.unwrap().action,
        ElicitAction::Decline
    );
    for url in ["javascript:alert(1)", "file:///etc/passwd", "https://a\u{202e}b/"] {
        assert_eq!(guard.elicit(&FILES, visit(url)).await.unwrap_err().kind(), RefusalKind::Unsafe, "{url}");
    }
    assert_eq!((gate.take_asked().len(), opened.0.lock().unwrap().len()), (2, 0));
    gate.push(Verdict::allow());
    assert_eq!(guard.elicit(&FILES, visit(page)).await.unwrap().action, ElicitAction::Accept);
    assert_eq!(*opened.0.lock().unwrap(), [page]);
}

#[tokio::test]
async fn a_rule_about_a_url_applies_to_every_spelling() {
    // V-103, V-105
    let (gate, builder) = scripted([]);
    let deny = Rule::deny().action(Action::Visit).tool("https://evil.example/*");
    let guard = builder.policy(Policy::new([deny])).build();
    for url in [
        "https://evil.example/login",
        "HTTPS://Evil.Example/login",
        "https://evil.example:443/login",
        "https://bank.example@evil.example/login",
        "https://evil.example./login",
        "https://evil.example?to=login",
    ] {
        let asked = ElicitParams::url("Sign in", url);
        assert!(guard.forward(&FILES, &InputRequest::Elicit(asked.clone())).is_err(), "{url}");
        assert_eq!(guard.elicit(&FILES, asked).await.unwrap().action, ElicitAction::Decline, "{url}");
    }
    assert_eq!(gate.take_asked(), []);
}

#[tokio::test]
async fn roots_are_disclosed_after_consent() {
    // proves: ROOT-11, ROOT-16, SEC-02
    let (gate, builder) = scripted([Verdict::decline(), Verdict::allow_for(Scope::Run, None)]);
    let guard = builder.build();
    let roots = [Root::new("file:///srv")];
    assert_eq!(guard.roots(&FILES, &roots).await.unwrap_err().kind(), RefusalKind::Declined);
    assert_eq!(guard.roots(&FILES, &roots).await, Ok(()));
    assert_eq!(guard.roots(&FILES, &roots).await, Ok(()));
    assert_eq!(gate.take_asked().len(), 2);
}

/// Cannot open anything.
struct Broken;

impl Opener for Broken {
    fn open<'a>(&'a self, _: &'a ShownUrl) -> BoxFuture<'a, std::io::Result<()>> {
        Box::pin(std::future::ready(Err(std::io::ErrorKind::NotFound.into())))
    }
}

#[tokio::test]
async fn a_url_that_cannot_be_opened_cancels_the_elicitation() {
    let (_, builder) = scripted([Verdict::allow()]);
    let guard = builder.opener(Broken).build();
    let visit = ElicitParams::url("Log in", "https://example.com/login");
    assert_eq!(guard.elicit(&FILES, visit).await.unwrap().action, ElicitAction::Cancel);
}

#[tokio::test]
async fn urls_must_be_encrypted_or_local() {
    // V-103
    let (gate, builder) = scripted([Verdict::allow()]);
    let guard = builder.build();
    let page = |url: &str| ElicitParams::url("Log in", url);
    let refusal = guard.elicit(&FILES, page("http://example.com/login")).await.unwrap_err();
    assert_eq!(refusal.kind(), RefusalKind::Unsafe);
    let forwarded = InputRequest::Elicit(page("http://example.com/login"));
    assert!(guard.forward(&FILES, &forwarded).is_err());
    assert_eq!(gate.take_asked(), []);
    let here = page("http://127.0.0.1:8080/login");
    assert_eq!(guard.elicit(&FILES, here).await.unwrap().action, ElicitAction::Accept);
}
