//! Questions in a terminal, as a person sees them.

use bowline_policy::{Action, Covers, Edit, Gate, Question, Scope, ShownUrl, Terminal, Verdict};
use bowline_types::{
    BooleanSchema, ContentBlock, CreateMessageParams, CreateMessageResult, ElicitSchema, EnumSchema,
    MultiSelectSchema, NumberSchema, RawJson, Role, Root, SamplingMessage, StringFormat, StringSchema, Tool,
    ToolAnnotations,
};
use expect_test::{Expect, expect};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};

/// Asks, answers with these lines, and gives the verdict and what was on the screen.
async fn dialog(answers: &str, question: Question) -> (Verdict, String) {
    let terminal = Terminal::new(answers.as_bytes(), Vec::new());
    let verdict = terminal.ask(question).await;
    let (_, screen) = terminal.into_inner();
    (verdict, String::from_utf8(screen).unwrap())
}

/// As [`dialog`], with the screen checked.
async fn check(answers: &str, question: Question, screen: Expect) -> Verdict {
    let (verdict, shown) = dialog(answers, question).await;
    screen.assert_eq(&shown);
    verdict
}

const ALL: [Scope; 4] = [Scope::Once, Scope::Run, Scope::Project, Scope::Always];

fn call(arguments: &str) -> Question {
    Question::Call {
        server: "files".into(),
        tool: "write".into(),
        title: Some("Write a file".into()),
        arguments: RawJson::parse(arguments.to_owned()).unwrap(),
        annotations: Some(ToolAnnotations::new().read_only_hint(false).open_world_hint(false)),
        client: Some("claude-code".into()),
        why: "no rule matches, and this tool may change things".into(),
        scopes: ALL.to_vec(),
        covers: vec![Covers::ReadOnlyTools, Covers::Server],
    }
}

#[tokio::test]
async fn a_call_is_shown_with_its_server_and_arguments() {
    // proves: TOOL-50, TOOL-54, TOOL-57
    let verdict = check(
        "maybe\np 8h\n",
        call(r#"{"path":"/srv/a","mode":420}"#),
        expect![[r#"

            [files] Allow this tool call?
              client: claude-code
              tool: write
              title: Write a file
              hints of the server: not read-only, closed world
              arguments:
              | {
              |   "mode": 420,
              |   "path": "/srv/a"
              | }
              reason: no rule matches, and this tool may change things
            [y] yes  [r] yes, for this run  [p] yes, in this project  [a] yes, always  [n] no  [c] cancel  [x] never  (add a duration to limit it: `r 30m`)
            [o] yes, all read-only tools of this server, always
            [e] yes, everything from this server, always
            files>   ! expected one of the letters above
            files> "#]],
    )
    .await;
    assert_eq!(verdict, Verdict::allow_for(Scope::Project, Some(Duration::from_secs(8 * 3600))));
}

#[tokio::test]
async fn nothing_from_a_server_hides_or_moves_the_cursor() {
    // V-100, V-103
    let question = Question::Call {
        server: "evil\u{1b}[2J".into(),
        tool: "rea\u{200b}d\r\n[files] Allow this tool call?".into(),
        title: Some("\u{202e}etirw".into()),
        arguments: RawJson::parse("{\"a\":\"x\u{e0041}\u{7f}\",\"a\":\"\\u001b[0m\\ny\"}").unwrap(),
        annotations: None,
        client: None,
        why: "rule: ask * *".into(),
        scopes: vec![Scope::Once],
        covers: Vec::new(),
    };
    let verdict = check(
        "n\n",
        question,
        expect![[r#"

            [evil<U+001B>[2J] Allow this tool call?
              tool: rea<U+200B>d<U+000D><U+000A>[files] Allow this tool call?
              title: <U+202E>etirw
              hints of the server: none
              arguments:
              | {
              |   "a": "x\udb40\udc41\u007f",
              |   "a": "\u001b[0m\ny"
              | }
              reason: rule: ask * *
            [y] yes  [n] no  [c] cancel
            evil<U+001B>[2J> "#]],
    )
    .await;
    assert_eq!(verdict, Verdict::decline());
}

#[tokio::test]
async fn no_text_of_a_server_looks_like_ours() {
    // V-103
    let question = Question::Visit {
        server: "evil".into(),
        message: "hello\n\n[bank] Enter your password\n> \u{2066}y\u{200d}".into(),
        url: ShownUrl::parse("https://bank.example@xn--pple-43d.example:8080/login?a=b").unwrap(),
    };
    let verdict = check(
        "y\n",
        question,
        expect![[r#"

            [evil] The server asks you to open a URL. Open it?
              | hello
              |
              | [bank] Enter your password
              | > <U+2066>y<U+200D>
              ! this text contains 2 invisible characters, shown as <U+...>
              host: xn--pple-43d.example
              the whole URL: https://bank.example@xn--pple-43d.example:8080/login?a=b
              ! the part before `@` is not the host; the host comes after it
              ! the host contains non-ASCII letters encoded as punycode
              ! the port is not the default port
            [y] yes  [n] no  [c] cancel
            evil> "#]],
    )
    .await;
    assert_eq!(verdict, Verdict::allow());
}

#[tokio::test]
async fn changes_and_roots_are_shown() {
    let diff = "  {\n-   \"description\": \"Reads.\"\n+   \"description\": \"Reads and sends.\"\n".to_owned();
    let question = Question::Changed { server: "files".into(), tool: "read".into(), diff };
    let verdict = check(
        "y\n",
        question,
        expect![[r#"

            [files] The definition of this tool changed since it was approved. Allow the new definition?
              tool: read
              what has changed:
              |   {
              | -   "description": "Reads."
              | +   "description": "Reads and sends."
            [y] yes  [n] no  [c] cancel
            files> "#]],
    )
    .await;
    assert_eq!(verdict, Verdict::allow());
    let question = Question::Roots {
        server: "files".into(),
        roots: vec![Root::new("file:///srv/a"), Root::new("file:///srv/b")],
        why: "no rule matches, and the server wants to see your folders".into(),
        scopes: vec![Scope::Once, Scope::Run],
    };
    let verdict = check(
        "r\n",
        question,
        expect![[r#"

            [files] Allow the server to see these folders?
              | file:///srv/a
              | file:///srv/b
              reason: no rule matches, and the server wants to see your folders
            [y] yes  [r] yes, for this run  [n] no  [c] cancel  (add a duration to limit it: `r 30m`)
            files> "#]],
    )
    .await;
    assert_eq!(verdict, Verdict::allow_for(Scope::Run, None));
}

#[tokio::test]
async fn new_tools_and_access_are_shown() {
    let definition = "{\n  \"name\": \"send\"\n}".to_owned();
    let question = Question::New { server: "files".into(), tool: "send".into(), definition };
    let verdict = check(
        "n\n",
        question,
        expect![[r#"

            [files] This tool is new. Allow it?
              tool: send
              what the server says about it:
              | {
              |   "name": "send"
              | }
            [y] yes  [n] no  [c] cancel
            files> "#]],
    )
    .await;
    assert_eq!(verdict, Verdict::decline());
    let question = Question::Access {
        server: "files".into(),
        action: Action::Read,
        name: "file:///srv/\u{202e}a".into(),
        client: None,
        why: "rule: ask files *".into(),
        scopes: vec![Scope::Once, Scope::Always],
    };
    let verdict = check(
        "x\n",
        question,
        expect![[r#"

            [files] Allow reading this resource?
              resource: file:///srv/<U+202E>a
              reason: rule: ask files *
            [y] yes  [a] yes, always  [n] no  [c] cancel  [x] never
            files> "#]],
    )
    .await;
    assert_eq!(verdict, Verdict::Decline { scope: Scope::Always, reason: None });
}

fn form() -> Question {
    let schema = ElicitSchema::new()
        .required_field(
            "name",
            StringSchema::new()
                .title("Full name")
                .description("As in\npassports")
                .min_length(2_u64)
                .max_length(9_u64),
        )
        .field("mail", StringSchema::new().format(StringFormat::Email))
        .required_field("count", NumberSchema::integer().minimum(1).maximum(5).with_default(3))
        .required_field("agree", BooleanSchema::new().with_default(false))
        .required_field("size", EnumSchema::titled([("s", "Small"), ("l", "Lar\u{200b}ge")]))
        .field("tags", MultiSelectSchema::untitled(["a", "b", "c"]).max_items(2_u64));
    Question::Form { server: "shop".into(), message: "Your order".into(), schema: Box::new(schema) }
}

#[tokio::test]
async fn a_form_is_filled_in_field_by_field() {
    // proves: ELIF-24, ELIF-25, ELIF-27, ELIF-34
    let answers = "\nA\nAda\nnobody\n\nsix\n9\n\nyes\nMedium\n2\n1, b, c\n1, b\nq\ns\n";
    let verdict = check(
        answers,
        form(),
        expect![[r#"

            [shop] The server asks you to fill in a form.
              | Your order
              (Enter: default or skip; "": empty text; :decline: decline; :cancel: cancel)

              1/6 name (Full name): text, 2 to 9 characters, required
              | As in
              | passports
            shop>   ! this field is required
            shop>   ! expected at least 2 characters, got 1
            shop> 
              2/6 mail: email address, may be left out
            shop>   ! expected an email address, got `nobody`
            shop> 
              3/6 count: whole number, 1 to 5, required
              | default: 3
            shop>   ! expected a number
            shop>   ! expected at most 5, got 9
            shop> 
              4/6 agree: yes or no, required
              | default: false
            shop> 
              5/6 size: one of these, required
              | 1) s = Small
              | 2) l = Lar<U+200B>ge
            shop>   ! expected one of `s`, `l`, got `Medium`
            shop> 
              6/6 tags: any of these, separated by commas, at most 2, may be left out
              | 1) a
              | 2) b
              | 3) c
            shop>   ! expected at most 2 values, got 3
            shop> 
              This is what `shop` will get:
              | name: "Ada"
              | count: 3
              | agree: true
              | size: "l"
              | tags: ["a","b"]
            [s] send  [e] fill in again  [n] no  [c] cancel
            shop>   ! expected one of the letters above
            shop> "#]],
    )
    .await;
    let Verdict::Allow(granted) = verdict else { panic!("expected an answer, got {verdict:?}") };
    let Some(Edit::Form(content)) = granted.edit else { panic!("expected the fields") };
    assert_eq!(
        serde_json::to_string(&content).unwrap(),
        r#"{"name":"Ada","count":3,"agree":true,"size":"l","tags":["a","b"]}"#
    );
}

#[tokio::test]
async fn urls_in_a_form_are_plain_text() {
    // proves: ELIF-43
    let schema =
        ElicitSchema::new().field("site", StringSchema::new().description("See https://a.example/x"));
    let question = Question::Form {
        server: "shop".into(),
        message: "Open \u{1b}]8;;https://evil.example\u{1b}\\https://a.example\u{1b}]8;;\u{1b}\\ first"
            .into(),
        schema: Box::new(schema),
    };
    let (_, screen) = dialog(":decline\n", question).await;
    assert!(screen.contains("https://a.example/x"), "{screen}");
    assert!(!screen.contains('\u{1b}'), "{screen}");
}

#[tokio::test]
async fn a_form_can_be_declined_and_cancelled_at_any_point() {
    // proves: ELIF-26, ELIF-28, ELIF-32
    for (answers, expected) in [
        (":decline\n", Verdict::decline()),
        ("Ada\n:cancel\n", Verdict::Cancel),
        ("Ada\n\n", Verdict::Cancel),
        ("", Verdict::Cancel),
        ("Ada\n\n\ny\n1\n\nn\n", Verdict::decline()),
        ("Ada\n\n\ny\n1\n\nc\n", Verdict::Cancel),
        ("Ada\n\n\ny\n1\n\ne\n:decline\n", Verdict::decline()),
    ] {
        assert_eq!(dialog(answers, form()).await.0, expected, "{answers:?}");
    }
    let (verdict, screen) = dialog(":sudo\n::x\n\n\n\ns\n\ns\n", form()).await;
    assert!(screen.contains("! expected :decline or :cancel; start text that begins with a colon with `::`"));
    let Verdict::Allow(granted) = verdict else { panic!("expected an answer, got {verdict:?}") };
    assert!(format!("{:?}", granted.edit).contains(r#""name": ":x""#), "{:?}", granted.edit);
}

fn sampling() -> Question {
    let mut request = CreateMessageParams::new(
        vec![
            SamplingMessage::user("Summarize\nthis"),
            SamplingMessage::assistant(ContentBlock::image([1, 2], "image/png")),
        ],
        100_u64,
    );
    request.system_prompt = Some("Be brief.\u{202e}".into());
    request.tools = Some(vec![Tool::new("look", RawJson::empty_object())]);
    Question::Sample {
        server: "notes".into(),
        request: Box::new(request),
        why: "no rule matches, and the server wants to use the model".into(),
        scopes: vec![Scope::Once, Scope::Run],
    }
}

#[tokio::test]
async fn sampling_requests_can_be_shown_and_edited() {
    // proves: SAMP-30
    // V-103
    let verdict = check(
        "e\n9\ne\ns\n\n.\ne\n1\nSay\nno.\n.\nr\ny\n",
        sampling(),
        expect![[r#"

            [notes] Allow sending this to the model?
              system prompt:
              | Be brief.<U+202E>
              ! this text contains 1 invisible character, shown as <U+...>
              message 1: user
              | Summarize
              | this
              message 2: assistant
              | (a picture, image/png, 4 characters)
              with the tool: look
              at most: 100 tokens
              reason: no rule matches, and the server wants to use the model
            [y] yes  [r] yes, for this run  [n] no  [c] cancel  (add a duration to limit it: `r 30m`)  [e] edit
            notes>   which? (the number of a message, or s for the system prompt)
            notes>   ! there is no such message

            [notes] Allow sending this to the model?
              system prompt:
              | Be brief.<U+202E>
              ! this text contains 1 invisible character, shown as <U+...>
              message 1: user
              | Summarize
              | this
              message 2: assistant
              | (a picture, image/png, 4 characters)
              with the tool: look
              at most: 100 tokens
              reason: no rule matches, and the server wants to use the model
            [y] yes  [r] yes, for this run  [n] no  [c] cancel  (add a duration to limit it: `r 30m`)  [e] edit
            notes>   which? (the number of a message, or s for the system prompt)
            notes>   (enter the new text; end with a line that contains only a dot)
            . . 
            [notes] Allow sending this to the model?
              message 1: user
              | Summarize
              | this
              message 2: assistant
              | (a picture, image/png, 4 characters)
              with the tool: look
              at most: 100 tokens
              reason: no rule matches, and the server wants to use the model
            [y] yes  [n] no  [c] cancel  [e] edit
            notes>   which? (the number of a message, or s for the system prompt)
            notes>   (enter the new text; end with a line that contains only a dot)
            . . . 
            [notes] Allow sending this to the model?
              message 1: user
              | Say
              | no.
              message 2: assistant
              | (a picture, image/png, 4 characters)
              with the tool: look
              at most: 100 tokens
              reason: no rule matches, and the server wants to use the model
            [y] yes  [n] no  [c] cancel  [e] edit
            notes>   ! expected one of the letters above
            notes> "#]],
    )
    .await;
    let Verdict::Allow(granted) = verdict else { panic!("expected a yes, got {verdict:?}") };
    let Some(Edit::Request(request)) = granted.edit else { panic!("expected the edited request") };
    assert_eq!(request.system_prompt, None);
    assert_eq!(request.messages.first(), Some(&SamplingMessage::user("Say\nno.")));
}

#[tokio::test]
async fn sampling_answers_can_be_edited() {
    let result = CreateMessageResult::new(Role::Assistant, "the key is 42", "some-model");
    let question = Question::SampleResult { server: "notes".into(), result: Box::new(result.clone()) };
    let (verdict, screen) = dialog("y\n", question.clone()).await;
    assert_eq!(verdict, Verdict::allow());
    assert!(screen.contains("  model: some-model\n  | the key is 42\n"), "{screen}");
    let (verdict, _) = dialog("e\nno\n.\ny\n", question).await;
    let mut edited = result;
    edited.content = "no".into();
    assert_eq!(verdict, Verdict::edited(Edit::Result(Box::new(edited))));
}

#[tokio::test]
async fn long_texts_show_their_start_their_end_and_the_omitted_length() {
    // V-100
    let question = call(&format!(r#"{{"a":"{}END"}}"#, "x".repeat(100_000)));
    let (verdict, screen) = dialog("", question).await;
    assert_eq!(verdict, Verdict::Cancel);
    assert!(screen.len() < 20_000);
    let (start, end) = screen.split_once("  ! 83632 characters are not shown here\n").unwrap();
    assert!(start.contains("  |   \"a\": \"xxx") && end.contains("xEND\"\n  | }\n"));
    let many = Question::Visit {
        server: "evil".into(),
        message: format!("first{}last", "\n".repeat(5000)),
        url: ShownUrl::parse("https://example.com/").unwrap(),
    };
    let (_, screen) = dialog("", many).await;
    assert!(screen.lines().count() < 420 && screen.contains("  | first\n") && screen.contains("  | last\n"));
    assert!(screen.contains("characters are not shown here\n") && screen.ends_with("\nevil> "));
    let name = Question::Changed { server: "evil".into(), tool: "t\n".repeat(50_000), diff: String::new() };
    let (_, screen) = dialog("", name).await;
    assert!(screen.len() < 20_000 && screen.lines().count() < 10);
}

#[tokio::test]
async fn an_answer_to_a_withdrawn_question_answers_no_other() {
    // V-103
    let (mut keyboard, input) = tokio::io::duplex(1024);
    let (output, mut screen) = tokio::io::duplex(1 << 16);
    let terminal = Terminal::new(BufReader::new(input), output);
    let mut seen = vec![0; 1 << 16];
    {
        let mut withdrawn = terminal.ask(call(r#"{"path":"/srv/harmless"}"#));
        // Half an answer is typed when the question goes away.
        keyboard.write_all(b"y").await.unwrap();
        let mut shown = String::new();
        while !shown.ends_with("\nfiles> ") {
            tokio::select! {
                verdict = &mut withdrawn => panic!("answered: {verdict:?}"),
                count = screen.read(&mut seen) => shown.push_str(std::str::from_utf8(&seen[..count.unwrap()]).unwrap()),
            }
        }
    }
    let mut next = terminal.ask(call(r#"{"path":"/srv/all"}"#));
    let mut shown = String::new();
    while !shown.contains("\nPress Enter to answer.") {
        tokio::select! {
            verdict = &mut next => panic!("answered: {verdict:?}"),
            count = screen.read(&mut seen) => shown.push_str(std::str::from_utf8(&seen[..count.unwrap()]).unwrap()),
        }
    }
    assert!(shown.starts_with("\nThe question above was withdrawn. This is the next one:\n"), "{shown}");
    assert!(shown.contains("/srv/all"), "the question is shown before anything is typed: {shown}");
    keyboard.write_all(b"\nn\n").await.unwrap();
    assert_eq!(next.await, Verdict::decline());
}

#[tokio::test]
async fn questions_wait_for_each_other() {
    let terminal = Terminal::new("y\nn\n".as_bytes(), Vec::new());
    let (first, second) = tokio::join!(terminal.ask(call("{}")), terminal.ask(call("{}")));
    assert_eq!((first, second), (Verdict::allow(), Verdict::decline()));
    assert_eq!(terminal.ask(call("{}")).await, Verdict::Cancel);
    let screen = String::from_utf8(terminal.into_inner().1).unwrap();
    assert_eq!(screen.matches("[files] Allow this tool call?").count(), 3);
}

#[tokio::test]
async fn the_pattern_of_a_field_is_shown_and_enforced() {
    let schema =
        ElicitSchema::new().required_field("code", StringSchema::new().with_pattern("^[A-Z]{3}$|\u{1b}"));
    let question =
        Question::Form { server: "shop".into(), message: "Which?".into(), schema: Box::new(schema) };
    let (verdict, shown) = dialog("euro\nEUR\ns\n", question).await;
    assert!(shown.contains("code: text, matching ^[A-Z]{3}$"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(shown.contains("! expected text that matches the pattern"), "{shown}");
    let Verdict::Allow(granted) = verdict else { panic!("expected an answer, got {verdict:?}") };
    let Some(Edit::Form(content)) = granted.edit else { panic!("expected a form") };
    assert_eq!(content.decode::<String>("code").unwrap().as_deref(), Some("EUR"));
}

// proves: ELIF-26
#[tokio::test]
async fn decline_and_cancel_are_offered_wherever_a_user_is_asked() {
    let page = || Question::Visit {
        server: "files".into(),
        message: "Sign in".into(),
        url: ShownUrl::parse("https://example.com/").unwrap(),
    };
    let changed = || Question::Changed { server: "files".into(), tool: "read".into(), diff: String::new() };
    let roots = || Question::Roots {
        server: "files".into(),
        roots: vec![Root::new("file:///srv")],
        why: "rule: ask".into(),
        scopes: ALL.to_vec(),
    };
    let form = || Question::Form {
        server: "files".into(),
        message: "Who?".into(),
        schema: Box::new(ElicitSchema::new().field("name", StringSchema::new())),
    };
    for question in [call("{}"), page(), changed(), roots()] {
        let (verdict, screen) = dialog("n\n", question.clone()).await;
        assert!(screen.contains("[n] no  [c] cancel"), "{screen}");
        assert_eq!(verdict, Verdict::decline(), "{question:?}");
        assert_eq!(dialog("c\n", question).await.0, Verdict::Cancel);
    }
    let (verdict, screen) = dialog(":decline\n", form()).await;
    assert!(screen.contains(":decline: decline; :cancel: cancel"), "{screen}");
    assert_eq!(verdict, Verdict::decline());
    assert_eq!(dialog(":cancel\n", form()).await.0, Verdict::Cancel);
    assert_eq!(dialog("Ada\nc\n", form()).await.0, Verdict::Cancel);
}
