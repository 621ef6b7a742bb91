//! The way of calls and questions through the guard.

mod questions;

use bowline_policy::audit::{Audit, AuditArguments, AuditSettings};
use bowline_policy::{
    Action, Answers, ArgumentTest, CallFacts, Caller, Covers, DecidedBy, Definition, DifferenceKind, Edit,
    Ended, Facts, Gate, Granted, Guard, GuardBuilder, NewTools, Opener, Permit, Pins, Policy, Question,
    QuestionLimit, Refusal, RefusalKind, Rule, Scope, Scripted, ShownUrl, Token, Trust, Verdict,
};
use bowline_proto::service::BoxFuture;
use bowline_types::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitSchema, InputRequest,
    RawJson, RawMap, Role, Root, SamplingMessage, StringFormat, StringSchema, Tool, ToolAnnotations,
};
use expect_test::expect;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder of its own that goes away with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bowline-guard-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A clock that is set by hand.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    fn clock(&self) -> impl Fn() -> SystemTime + Send + Sync + 'static {
        let hands = self.clone();
        move || UNIX_EPOCH + Duration::from_secs(1_785_240_000 + hands.0.load(Ordering::Relaxed))
    }
}

fn tool(name: &str, description: &str) -> Definition {
    Definition::of(&Tool::new(name, RawJson::empty_object()).description(description))
}

fn scripted(verdicts: impl IntoIterator<Item = Verdict>) -> (Arc<Scripted>, GuardBuilder) {
    let gate = Arc::new(Scripted::new(verdicts));
    (Arc::clone(&gate), Guard::builder().gate(gate))
}

const FILES: Facts<'static> = Facts {
    server: "files",
    trust: Trust::Untrusted,
    caller: Caller { client: None, principal: None, token: Token::None },
    project: Some("/srv/project"),
    identity: None,
    gate: None,
};

async fn call(guard: &Guard, definition: &Definition) -> Result<Permit, Refusal> {
    let arguments = RawJson::parse(r#"{"path":"/srv/a"}"#).unwrap();
    guard.check(&CallFacts { facts: FILES, definition, arguments: &arguments }).await
}

/// Who allowed, or why not.
async fn outcome(guard: &Guard, definition: &Definition) -> Result<DecidedBy, (RefusalKind, String)> {
    let permit = call(guard, definition).await;
    permit.map(|permit| permit.by()).map_err(|refusal| (refusal.kind(), refusal.reason().to_owned()))
}

#[tokio::test]
async fn rules_come_before_answers_and_answers_before_the_gate() {
    // proves: TOOL-46, TOOL-49, SEC-04
    let (gate, builder) = scripted([Verdict::allow_for(Scope::Run, None)]);
    let guard =
        builder.policy(Policy::new([Rule::deny().tool("delete"), Rule::allow().tool("stat")])).build();
    assert_eq!(outcome(&guard, &tool("stat", "")).await, Ok(DecidedBy::Rule));
    assert_eq!(
        outcome(&guard, &tool("delete", "")).await,
        Err((RefusalKind::Denied, "rule: deny * delete".to_owned()))
    );
    assert_eq!(gate.take_asked(), []);
    assert_eq!(outcome(&guard, &tool("write", "")).await, Ok(DecidedBy::Gate));
    assert_eq!(outcome(&guard, &tool("write", "")).await, Ok(DecidedBy::Remembered));
    assert_eq!(
        gate.take_asked(),
        [Question::Call {
            server: "files".into(),
            tool: "write".into(),
            title: None,
            arguments: RawJson::parse(r#"{"path":"/srv/a"}"#).unwrap(),
            annotations: None,
            client: None,
            why: "no rule matches, and this tool may change things".into(),
            // Without a file nothing lasts longer than the run.
            scopes: vec![Scope::Once, Scope::Run],
            covers: vec![Covers::Server],
        }]
    );
    // A rule that is added later beats what was answered.
    guard.set_policy(Policy::new([Rule::deny().tool("write")]));
    assert!(outcome(&guard, &tool("write", "")).await.is_err());
}

#[tokio::test]
async fn an_answer_applies_to_one_definition_one_user_and_its_time() {
    // V-101, V-111
    let (folder, hands) = (Folder::new("answers"), Hands::default());
    let (gate, builder) = scripted([]);
    let answers = Answers::open(folder.join("answers.json")).unwrap();
    let guard = builder.answers(answers).clock(hands.clock()).build();
    let one = tool("write", "1");
    gate.push(Verdict::allow_for(Scope::Always, Some(Duration::from_secs(60))));
    assert_eq!(outcome(&guard, &one).await, Ok(DecidedBy::Gate));
    hands.advance(59);
    assert_eq!(outcome(&guard, &one).await, Ok(DecidedBy::Remembered));
    assert_eq!(outcome(&guard, &tool("write", "2")).await.unwrap_err().0, RefusalKind::Cancelled);
    let ann = Facts { caller: Caller { principal: Some("ann"), client: None, token: Token::None }, ..FILES };
    let arguments = RawJson::empty_object();
    let by_ann = guard.check(&CallFacts { facts: ann, definition: &one, arguments: &arguments }).await;
    assert_eq!(by_ann.unwrap_err().kind(), RefusalKind::Cancelled);
    hands.advance(1);
    assert_eq!(outcome(&guard, &one).await.unwrap_err().0, RefusalKind::Cancelled);
    // A never holds too.
    gate.push(Verdict::Decline { scope: Scope::Always, reason: Some("not on my watch".into()) });
    assert_eq!(outcome(&guard, &one).await, Err((RefusalKind::Declined, "not on my watch".to_owned())));
    assert_eq!(
        outcome(&guard, &one).await,
        Err((RefusalKind::Denied, "declined when asked before".to_owned()))
    );
}

#[tokio::test]
async fn an_approval_of_a_tool_does_not_cover_arguments_that_a_rule_asks_about() {
    // V-104
    let (gate, builder) = scripted([]);
    let rule = Rule::ask().argument("/path", ArgumentTest::Within("/etc".into()));
    let guard = builder.policy(Policy::new([rule])).build();
    let run = |definition: &'static str, path: &str| {
        let arguments = RawJson::from(serde_json::json!({ "path": path }));
        let (definition, guard) = (tool(definition, ""), &guard);
        async move {
            let call = CallFacts { facts: FILES, definition: &definition, arguments: &arguments };
            guard.check(&call).await.map(|permit| permit.by()).map_err(|refusal| refusal.kind())
        }
    };
    gate.push(Verdict::allow_for(Scope::Run, None));
    assert_eq!(run("write", "/srv/a").await, Ok(DecidedBy::Gate));
    assert_eq!(run("write", "/srv/b").await, Ok(DecidedBy::Remembered));
    assert_eq!(run("write", "/etc/a").await, Err(RefusalKind::Cancelled));
    // What is answered then holds for these arguments.
    gate.push(Verdict::allow_for(Scope::Run, None));
    assert_eq!(run("write", "/etc/a").await, Ok(DecidedBy::Gate));
    assert_eq!(run("write", "/etc/a").await, Ok(DecidedBy::Remembered));
    assert_eq!(run("write", "/etc/b").await, Err(RefusalKind::Cancelled));
    // A no to the tool is one to all that it could do.
    gate.push(Verdict::Decline { scope: Scope::Run, reason: None });
    assert_eq!(run("erase", "/srv/a").await, Err(RefusalKind::Declined));
    assert_eq!(run("erase", "/etc/a").await, Err(RefusalKind::Denied));
}

#[tokio::test]
async fn a_damaged_file_of_answers_refuses() {
    // V-101
    let folder = Folder::new("damaged");
    let path = folder.join("answers.json");
    let (gate, builder) = scripted([Verdict::allow_for(Scope::Always, None)]);
    let guard = builder.answers(Answers::open(&path).unwrap()).build();
    assert_eq!(outcome(&guard, &tool("write", "")).await, Ok(DecidedBy::Gate));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"version\": 1", "\"version\": one")).unwrap();
    let (kind, reason) = outcome(&guard, &tool("write", "")).await.unwrap_err();
    assert_eq!(kind, RefusalKind::Unsafe);
    assert!(reason.contains("answers.json:11: damaged: "), "{reason}");
    assert_eq!(gate.take_asked().len(), 1);
}

#[tokio::test]
async fn a_changed_tool_is_not_called_before_its_change_is_accepted() {
    // V-101
    let folder = Folder::new("changed");
    let (gate, builder) = scripted([]);
    let pins = Pins::open(folder.join("bowline.lock")).unwrap();
    let guard = builder.policy(Policy::new([Rule::allow().server("files")])).pins(pins).build();
    let (old, new) = (tool("read", "Reads."), tool("read", "Reads, then mails it."));
    assert_eq!(guard.listed(&FILES, std::slice::from_ref(&old)).await.unwrap(), []);
    assert_eq!(outcome(&guard, &old).await, Ok(DecidedBy::Rule));
    let differences = guard.listed(&FILES, std::slice::from_ref(&new)).await.unwrap();
    assert!(matches!(differences[0].kind, DifferenceKind::Changed { .. }));

    gate.push(Verdict::decline());
    assert_eq!(
        outcome(&guard, &new).await,
        Err((RefusalKind::Declined, "the definition of `read` has changed, and was not accepted".to_owned()))
    );
    let asked = gate.take_asked();
    let [Question::Changed { server, tool, diff }] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((server.as_str(), tool.as_str()), ("files", "read"));
    assert!(
        diff.contains("-   \"description\": \"Reads.\",\n+   \"description\": \"Reads, then mails it.\","),
        "{diff}"
    );
    // What it was may still be called; what it is stays in quarantine.
    assert_eq!(outcome(&guard, &old).await, Ok(DecidedBy::Rule));
    assert_eq!(outcome(&guard, &new).await.unwrap_err().0, RefusalKind::Cancelled);
    gate.push(Verdict::allow());
    assert_eq!(outcome(&guard, &new).await, Ok(DecidedBy::Rule));
    assert_eq!(gate.take_asked().len(), 2);
    assert_eq!(outcome(&guard, &new).await, Ok(DecidedBy::Rule));
    assert_eq!(gate.take_asked(), []);
    // It holds in the next run too.
    let again = Pins::open(folder.join("bowline.lock")).unwrap();
    assert_eq!(again.compare(&"files".into(), &[new]), []);
}

#[tokio::test]
async fn a_denied_tool_is_refused_without_a_question_about_its_change() {
    let (gate, builder) = scripted([Verdict::allow()]);
    let pins = Pins::in_memory();
    pins.accept(&"files".into(), &[tool("read", "1")]).unwrap();
    let guard = builder.policy(Policy::new([Rule::deny()])).pins(pins).build();
    assert_eq!(outcome(&guard, &tool("read", "2")).await.unwrap_err().0, RefusalKind::Denied);
    assert_eq!(gate.take_asked(), []);
}

#[tokio::test]
async fn new_tools_of_known_servers_are_reported_or_need_approval() {
    // V-101
    for (setting, asks) in [(NewTools::Accept, false), (NewTools::Report, false), (NewTools::Ask, true)] {
        let (gate, builder) = scripted([Verdict::decline(), Verdict::allow()]);
        let guard =
            builder.policy(Policy::new([Rule::allow()])).pins(Pins::in_memory()).new_tools(setting).build();
        assert_eq!(guard.listed(&FILES, &[tool("a", "")]).await.unwrap(), []);
        let told = guard.listed(&FILES, &[tool("a", ""), tool("b", "")]).await.unwrap();
        assert_eq!(told.iter().map(ToString::to_string).collect::<Vec<_>>(), ["files: `b` is new"]);
        let first = outcome(&guard, &tool("b", "")).await;
        assert_eq!(first.is_err(), asks, "{setting:?}");
        assert_eq!(outcome(&guard, &tool("b", "")).await, Ok(DecidedBy::Rule));
        let asked = gate.take_asked();
        assert_eq!(asked.len(), if asks { 2 } else { 0 }, "{asked:?}");
        assert!(asked.iter().all(|question| matches!(question, Question::New { tool, .. } if tool == "b")));
        assert_eq!(outcome(&guard, &tool("a", "")).await, Ok(DecidedBy::Rule));
    }
}

#[tokio::test]
async fn a_server_that_another_process_has_met_is_not_new() {
    // V-101
    let folder = Folder::new("met");
    let path = folder.join("bowline.lock");
    let (old, new) = (tool("read", "Reads."), tool("read", "Reads, and mails it."));
    let pins = || Pins::open(&path).unwrap();
    let late = Guard::builder().pins(pins()).build();
    Guard::builder().pins(pins()).build().listed(&FILES, std::slice::from_ref(&old)).await.unwrap();
    let differences = late.listed(&FILES, std::slice::from_ref(&new)).await.unwrap();
    assert!(matches!(differences[..], [ref only] if matches!(only.kind, DifferenceKind::Changed { .. })));
    assert_eq!(pins().status(&"files".into(), &old), bowline_policy::PinStatus::Same);
}

#[tokio::test]
async fn another_process_can_accept_a_change_and_break_the_lock_file() {
    // V-101
    let folder = Folder::new("other-process");
    let path = folder.join("bowline.lock");
    let (gate, builder) = scripted([]);
    let guard = builder.policy(Policy::new([Rule::allow()])).pins(Pins::open(&path).unwrap()).build();
    guard.listed(&FILES, &[tool("a", "1")]).await.unwrap();
    Pins::open(&path).unwrap().accept(&"files".into(), &[tool("a", "2")]).unwrap();
    assert_eq!(outcome(&guard, &tool("a", "2")).await, Ok(DecidedBy::Rule));
    std::fs::write(&path, "{}").unwrap();
    let (kind, reason) = outcome(&guard, &tool("a", "3")).await.unwrap_err();
    assert_eq!(kind, RefusalKind::Unsafe);
    assert!(reason.contains("bowline.lock:1: damaged: missing field"), "{reason}");
    assert_eq!(gate.take_asked(), []);
}

/// Answers only when told to.
#[derive(Default)]
struct Slow {
    asked: Mutex<Vec<tokio::sync::oneshot::Sender<Verdict>>>,
    news: tokio::sync::Notify,
}

impl Slow {
    async fn next(&self) -> tokio::sync::oneshot::Sender<Verdict> {
        loop {
            let taken = self.asked.lock().unwrap().pop();
            match taken {
                Some(answer) => return answer,
                None => self.news.notified().await,
            }
        }
    }
}

impl Gate for Slow {
    fn ask(&self, _: Question) -> BoxFuture<'_, Verdict> {
        let (answer, verdict) = tokio::sync::oneshot::channel();
        self.asked.lock().unwrap().push(answer);
        self.news.notify_one();
        Box::pin(async move { verdict.await.unwrap_or(Verdict::Cancel) })
    }
}

#[tokio::test]
async fn calls_that_would_ask_the_same_share_the_answer() {
    let gate = Arc::new(Slow::default());
    let guard = Guard::builder().gate(Arc::clone(&gate)).build();
    let write = tool("write", "");
    let answer = async {
        gate.next().await.send(Verdict::allow_for(Scope::Run, None)).unwrap();
    };
    let (one, other, third, ()) =
        tokio::join!(outcome(&guard, &write), outcome(&guard, &write), outcome(&guard, &write), answer);
    let mut by = [one.unwrap(), other.unwrap(), third.unwrap()];
    by.sort_by_key(|by| by.as_str());
    assert_eq!(by, [DecidedBy::Gate, DecidedBy::Remembered, DecidedBy::Remembered]);
}

#[tokio::test]
async fn too_many_questions_are_declined_and_counted() {
    // proves: ELIF-33
    // V-103
    let hands = Hands::default();
    let answered = std::iter::repeat_n(Verdict::allow(), 10).chain([Verdict::decline()]);
    let (gate, builder) = scripted(answered.chain([Verdict::Cancel, Verdict::Cancel]));
    let guard = builder.question_limit(QuestionLimit { unanswered: 2 }).clock(hands.clock()).build();
    // Whatever was answered does not count.
    for number in 0..10 {
        assert!(outcome(&guard, &tool(&number.to_string(), "")).await.is_ok());
    }
    assert_eq!(outcome(&guard, &tool("a", "")).await.unwrap_err().0, RefusalKind::Declined);
    for _ in 0..2 {
        assert_eq!(outcome(&guard, &tool("b", "")).await.unwrap_err().0, RefusalKind::Cancelled);
    }
    gate.take_asked();
    let (kind, reason) = outcome(&guard, &tool("c", "")).await.unwrap_err();
    assert_eq!(kind, RefusalKind::Limited);
    assert_eq!(
        reason,
        "approval is needed (no rule matches, and this tool may change things), but 2 questions of this server are \
         unanswered; answer them, wait a minute, or raise `max_questions` in `[gateway]`"
    );
    // Forms of the same server count with it; those of another do not.
    let form = || ElicitParams::form("?", ElicitSchema::new().field("a", StringSchema::new()));
    assert_eq!(guard.elicit(&FILES, form()).await.unwrap().action, ElicitAction::Decline);
    assert_eq!((guard.declined_questions("files"), gate.take_asked().len()), (2, 0));
    let other = Facts { server: "mail", ..FILES };
    assert_eq!(guard.elicit(&other, form()).await.unwrap().action, ElicitAction::Cancel);
    hands.advance(60);
    gate.push(Verdict::allow());
    assert!(outcome(&guard, &tool("c", "")).await.is_ok());
}

#[tokio::test]
async fn withdrawn_questions_stop_counting_after_a_minute() {
    let (gate, hands) = (Arc::new(Slow::default()), Hands::default());
    let limit = QuestionLimit { unanswered: 1 };
    let guard = Guard::builder().gate(Arc::clone(&gate)).question_limit(limit).clock(hands.clock()).build();
    let (one, other) = (tool("a", ""), tool("b", ""));
    {
        let mut first = Box::pin(call(&guard, &one));
        tokio::select! {
            _ = &mut first => panic!("nobody has answered"),
            _answer = gate.next() => {}
        }
        let refusal = call(&guard, &other).await.unwrap_err();
        assert_eq!(refusal.kind(), RefusalKind::Limited);
    }
    assert_eq!(call(&guard, &other).await.unwrap_err().kind(), RefusalKind::Limited);
    hands.advance(60);
    let answer = async { gate.next().await.send(Verdict::allow()).unwrap() };
    let (allowed, ()) = tokio::join!(call(&guard, &other), answer);
    assert!(allowed.is_ok());
}

#[tokio::test]
async fn reading_and_prompts_are_routed_like_calls() {
    // V-105
    let (gate, builder) = scripted([Verdict::allow_for(Scope::Run, None)]);
    let guard = builder
        .policy(Policy::new([
            Rule::deny().action(Action::Read).tool("file:///etc/*"),
            Rule::ask().action(Action::Prompt).tool("secret"),
        ]))
        .build();
    let by = |outcome: Result<Permit, Refusal>| outcome.map(|permit| permit.by());
    assert_eq!(by(guard.access(&FILES, Action::Read, "file:///srv/a").await), Ok(DecidedBy::Default));
    let refusal = guard.access(&FILES, Action::Read, "file:///etc/passwd").await.unwrap_err();
    assert_eq!(refusal.to_string(), "not allowed: rule: deny * file:///etc/*");
    assert_eq!(by(guard.access(&FILES, Action::Prompt, "secret").await), Ok(DecidedBy::Gate));
    assert_eq!(by(guard.access(&FILES, Action::Prompt, "secret").await), Ok(DecidedBy::Remembered));
    assert_eq!(gate.take_asked().len(), 1);
    // A tool of the same name is something else.
    assert_eq!(outcome(&guard, &tool("secret", "")).await.unwrap_err().0, RefusalKind::Cancelled);
    // A custom method may change things, so the user is asked.
    assert_eq!(guard.access(&FILES, Action::Call, "x").await.unwrap_err().kind(), RefusalKind::Cancelled);
    assert_eq!(guard.access(&FILES, Action::Sample, "x").await.unwrap_err().kind(), RefusalKind::Unsafe);
}

#[tokio::test]
async fn without_a_gate_calls_are_refused_with_instructions() {
    let guard = Guard::builder().build();
    let (kind, reason) = outcome(&guard, &tool("write", "")).await.unwrap_err();
    assert_eq!(kind, RefusalKind::Declined);
    assert_eq!(
        reason,
        "`write` of `files` needs approval (no rule matches, and this tool may change things), and nobody can be asked: the \
         client does not support elicitation; start the gateway with `--allow files__write`, add a rule with effect = \
         \"allow\", server = \"files\", tool = \"write\", or set `consent = \"client\"` in `[gateway]`"
    );
    let read_only = ToolAnnotations::new().read_only_hint(true);
    let read = Definition::of(&Tool::new("read", RawJson::empty_object()).annotations(read_only));
    let arguments = RawJson::empty_object();
    let facts = Facts { trust: Trust::Trusted, ..FILES };
    let permit = guard.check(&CallFacts { facts, definition: &read, arguments: &arguments }).await.unwrap();
    assert_eq!(permit.reason(), "no rule matches, and read-only tools of trusted servers are allowed");
}

#[tokio::test]
async fn every_decision_and_every_call_is_logged() {
    let (folder, hands) = (Folder::new("audit"), Hands::default());
    let path = folder.join("audit.jsonl");
    let settings = AuditSettings::new(&path).arguments(AuditArguments::Redacted).secret("hunter22");
    let audit = Audit::open(settings).unwrap();
    let gate = Arc::new(Slow::default());
    let guard = Guard::builder()
        .gate(Arc::clone(&gate))
        .policy(Policy::new([
            Rule::deny().any_argument(ArgumentTest::Matches("*/etc/*".into())).origin("bowline.toml:3"),
            Rule::allow().tool("read"),
        ]))
        .pins(Pins::in_memory())
        .audit(audit.clone())
        .clock(hands.clock())
        .build();
    let facts =
        Facts { caller: Caller { client: Some("cli"), principal: Some("ann"), token: Token::None }, ..FILES };
    let check = async |definition: &Definition, arguments: &str| {
        let arguments = RawJson::parse(arguments.to_owned()).unwrap();
        guard.check(&CallFacts { facts, definition, arguments: &arguments }).await
    };
    let (read, write) = (tool("read", ""), tool("write", ""));
    guard.listed(&FILES, std::slice::from_ref(&read)).await.unwrap();
    guard.listed(&FILES, &[read.clone(), write.clone()]).await.unwrap();

    let permit = check(&read, r#"{"path":"/srv/hunter22","apiKey":"k"}"#).await.unwrap();
    hands.advance(2);
    permit.finish(Ended::Completed, 512);
    let permit = check(&read, "{}").await.unwrap();
    permit.finish(Ended::Failed { code: -32603, message: "hunter22 is wrong".into() }, 0);
    drop(check(&read, "{}").await.unwrap());
    check(&read, r#"{"path":"/etc/passwd"}"#).await.unwrap_err();
    {
        let mut asked = Box::pin(check(&write, "{}"));
        tokio::select! {
            _ = &mut asked => panic!("nobody has answered"),
            _answer = gate.next() => {}
        }
    }
    let answer = async { gate.next().await.send(Verdict::Cancel).unwrap() };
    let (refused, ()) = tokio::join!(check(&write, "{}"), answer);
    refused.unwrap_err();
    drop(guard);
    drop(audit);

    // Numbers of entries and processes differ from run to run.
    let text = std::fs::read_to_string(&path).unwrap();
    let without_id = |line: &str| match (line.find("\"id\":\""), line.find("\"client\"")) {
        (Some(start), Some(end)) => format!("{}{}", &line[..start], &line[end..]),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            without_id(line).replace("\"client\":\"cli\",\"principal\":\"ann\",\"server\":\"files\",", "")
        })
        .collect();
    expect![[r#"
        {"time":"2026-07-28T12:00:00.000Z","event":"pin","server":"files","method":"tools/list","name":"write","reason":"it is new"}
        {"time":"2026-07-28T12:00:00.000Z","event":"decision","method":"tools/call","name":"read","decision":"allow","by":"rule","reason":"rule: allow * read","arguments":{"apiKey":"***","path":"/srv/***"}}
        {"time":"2026-07-28T12:00:02.000Z","event":"call","method":"tools/call","name":"read","arguments":{"apiKey":"***","path":"/srv/***"},"outcome":"ok","durationMs":2000.000,"bytes":512}
        {"time":"2026-07-28T12:00:02.000Z","event":"decision","method":"tools/call","name":"read","decision":"allow","by":"rule","reason":"rule: allow * read","arguments":{}}
        {"time":"2026-07-28T12:00:02.000Z","event":"call","method":"tools/call","name":"read","arguments":{},"outcome":"error -32603: *** is wrong","durationMs":0.000,"bytes":0}
        {"time":"2026-07-28T12:00:02.000Z","event":"decision","method":"tools/call","name":"read","decision":"allow","by":"rule","reason":"rule: allow * read","arguments":{}}
        {"time":"2026-07-28T12:00:02.000Z","event":"call","method":"tools/call","name":"read","arguments":{},"outcome":"abandoned","durationMs":0.000}
        {"time":"2026-07-28T12:00:02.000Z","event":"decision","method":"tools/call","name":"read","decision":"deny","by":"rule","reason":"rule: deny * * (bowline.toml:3)","arguments":{"path":"/etc/passwd"}}
        {"time":"2026-07-28T12:00:02.000Z","event":"decision","method":"tools/call","name":"write","decision":"abandoned","arguments":{}}
        {"time":"2026-07-28T12:00:02.000Z","event":"decision","method":"tools/call","name":"write","decision":"cancel","by":"gate","reason":"the question was not answered","arguments":{}}"#]]
    .assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn an_answer_for_a_server_settles_what_no_rule_decides() {
    let (gate, builder) = scripted([]);
    let guard = builder.policy(Policy::new([Rule::ask().tool("erase")])).build();
    let reads = ToolAnnotations::new().read_only_hint(true);
    let reading =
        |name: &str| Definition::of(&Tool::new(name, RawJson::empty_object()).annotations(reads.clone()));
    let yes = |covers| Verdict::Allow(Granted { scope: Scope::Run, covers, ..Granted::default() });
    gate.push(yes(Covers::ReadOnlyTools));
    assert_eq!(outcome(&guard, &reading("a")).await, Ok(DecidedBy::Gate));
    assert_eq!(outcome(&guard, &reading("b")).await, Ok(DecidedBy::Remembered));
    assert_eq!(outcome(&guard, &tool("write", "")).await.unwrap_err().0, RefusalKind::Cancelled);
    gate.push(yes(Covers::Server));
    assert_eq!(outcome(&guard, &tool("write", "")).await, Ok(DecidedBy::Gate));
    assert_eq!(outcome(&guard, &tool("move", "")).await, Ok(DecidedBy::Remembered));
    // A rule that asks still asks, and an answer about one server is none about another.
    assert_eq!(outcome(&guard, &tool("erase", "")).await.unwrap_err().0, RefusalKind::Cancelled);
    let (write, arguments) = (tool("write", ""), RawJson::empty_object());
    for facts in [Facts { server: "mail", ..FILES }, Facts { identity: Some("npx other"), ..FILES }] {
        let asked = guard.check(&CallFacts { facts, definition: &write, arguments: &arguments }).await;
        assert_eq!(asked.unwrap_err().kind(), RefusalKind::Cancelled);
    }
}
