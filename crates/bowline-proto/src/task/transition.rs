//! The rules of a task: one function from a record and an event to the next record.

use super::record::{Body, Ending, TaskAnswer, TaskProgress, TaskRecord, TaskState};
use crate::replay::Question;
use bowline_types::{RawJson, RpcError};
use std::{fmt, time::Duration};

/// How many rounds of questions one task may have.
pub const MAX_ROUNDS: u32 = 100;

/// How many questions of one task may wait for an answer.
pub const MAX_QUESTIONS: usize = 32;

/// How many characters of a status message are kept.
pub const MAX_STATUS_CHARS: usize = 500;

/// How long a task stays readable after its end, at least.
pub const KEPT_AFTER_END: Duration = Duration::from_secs(15 * 60);

/// Something that happens to a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The handler asks; `kept` are the small values of its round.
    Ask {
        /// The questions.
        questions: Vec<Question>,
        /// What the next round needs.
        kept: Vec<(String, RawJson)>,
    },
    /// The client answers, by keys on the wire. Answers to unknown questions are ignored.
    Answer(Vec<(String, Result<Body, RpcError>)>),
    /// A connection of 2025-11-25 puts questions to its client until a time (milliseconds since the epoch).
    Put {
        /// Keys on the wire.
        keys: Vec<String>,
        /// Until when others leave these questions alone; 0 gives them back.
        until: u64,
    },
    /// The handler reports where it is.
    Report {
        /// A new status message.
        status: Option<String>,
        /// Its progress.
        progress: Option<TaskProgress>,
    },
    /// The handler waits. Nothing runs meanwhile.
    Sleep {
        /// For how long.
        time: Duration,
        /// What the next round needs.
        kept: Vec<(String, RawJson)>,
    },
    /// The process gives the task back, for another one to run it.
    Release,
    /// The handler is done.
    Finish(Ending),
    /// The client cancels. If another system does the work, the next process that claims the record cancels it there.
    Cancel,
    /// The other system that does the work has cancelled it, or does not run it.
    CancelledOutside,
    /// The job could not be cancelled in the other system; it is tried again after this time.
    CancelOutsideLater(Duration),
    /// Nothing; only an elapsed time takes effect.
    Refresh,
}

/// What a write does to the claim of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// It stays.
    #[default]
    Keep,
    /// Nobody holds the record any more.
    Release,
}

/// What a write does to the time at which the record can be claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Due {
    /// It stays.
    #[default]
    Keep,
    /// Nobody can claim the record.
    Never,
    /// It can be claimed after this time.
    In(Duration),
}

/// What a transition does besides changing the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effects {
    /// To the claim.
    pub claim: Claim,
    /// To the due time.
    pub due: Due,
    /// The record expires after this time. `None` leaves the expiry as it is.
    pub expires_in: Option<Duration>,
    /// Whether a client sees the change.
    pub is_visible: bool,
    /// Whether the record changed, so that it must be written.
    pub is_changed: bool,
}

/// Why an event does not apply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The task has ended. The record may have changed nevertheless: its time may have elapsed just now.
    Ended,
    /// The task does not wait for answers.
    NotAsking,
    /// The task was not cancelled.
    NotCancelled,
    /// A limit is exceeded; the text says which.
    Limit(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the task has ended"),
            Self::NotAsking => f.write_str("the task does not wait for input"),
            Self::NotCancelled => f.write_str("the task was not cancelled"),
            Self::Limit(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Refused {}

/// Applies an event at `now`, in milliseconds since the epoch of the store's clock.
///
/// An elapsed `ttl` is applied first, so that every reader sees it without a background job. If an event is refused, the record
/// is otherwise unchanged. Events can be repeated: an answer counts once, and what has ended stays as it is.
pub fn transition(record: &mut TaskRecord, event: Event, now: u64) -> Result<Effects, Refused> {
    let mut effects = expire(record, now);
    if record.is_terminal() {
        return match event {
            Event::Refresh => Ok(effects),
            event if record.cancels_outside() => after_cancellation(record, &event, effects),
            _ => Err(Refused::Ended),
        };
    }
    match event {
        Event::Refresh => return Ok(effects),
        Event::Ask { questions, kept } => ask(record, &questions, kept, &mut effects)?,
        Event::Answer(answers) => answer(record, answers, &mut effects)?,
        Event::Put { keys, until } => {
            for question in record.questions.iter_mut().filter(|question| keys.contains(&question.key)) {
                effects.is_changed |= question.put_until != until;
                question.put_until = until;
            }
        }
        Event::Report { status, progress } => {
            let status = status.map(|status| status.chars().take(MAX_STATUS_CHARS).collect::<String>());
            if status.is_some() && status != record.status {
                record.status = status;
                effects.is_visible = true;
            }
            if progress.is_some() && progress != record.progress {
                record.progress = progress;
                effects.is_visible = true;
            }
            effects.is_changed |= effects.is_visible;
        }
        Event::Sleep { time, kept } => {
            record.kept = kept;
            if let Some(job) = &mut record.job {
                job.polled_at = now;
            }
            effects = Effects { claim: Claim::Release, due: Due::In(time), is_changed: true, ..effects };
        }
        Event::Release => {
            effects =
                Effects { claim: Claim::Release, due: Due::In(Duration::ZERO), is_changed: true, ..effects };
        }
        Event::Finish(ending) => end(record, TaskState::Done(ending), now, &mut effects),
        Event::Cancel => {
            end(record, TaskState::Cancelled, now, &mut effects);
            if let Some(job) = &mut record.job {
                job.cancels = true;
                effects.due = Due::In(Duration::ZERO);
            }
        }
        Event::CancelledOutside => end(record, TaskState::Cancelled, now, &mut effects),
        // Only what was cancelled is cancelled outside.
        Event::CancelOutsideLater(_) => return Err(Refused::NotCancelled),
    }
    if effects.is_visible {
        record.updated_at = record.updated_at.max(now);
    }
    Ok(effects)
}

/// Applies an event to a cancelled task of which the other system does not know yet. What clients see stays as it is.
fn after_cancellation(
    record: &mut TaskRecord,
    event: &Event,
    mut effects: Effects,
) -> Result<Effects, Refused> {
    let Some(job) = &mut record.job else { return Err(Refused::Ended) };
    effects.due = match event {
        Event::CancelledOutside => {
            job.cancels = false;
            Due::Never
        }
        Event::CancelOutsideLater(time) => {
            job.tries = job.tries.saturating_add(1);
            Due::In(*time)
        }
        Event::Release => Due::In(Duration::ZERO),
        _ => return Err(Refused::Ended),
    };
    (effects.claim, effects.is_changed) = (Claim::Release, true);
    Ok(effects)
}

/// Fails a task whose time has elapsed.
fn expire(record: &mut TaskRecord, now: u64) -> Effects {
    let mut effects = Effects::default();
    let deadline = record.created_at.saturating_add(record.ttl_ms);
    if !record.is_terminal() && now >= deadline {
        let reason =
            format!("the task expired: `{}` did not end within {} ms", record.queue(), record.ttl_ms);
        let ending = Ending::Error(RpcError::internal(reason));
        end(record, TaskState::Done(ending), deadline, &mut effects);
    }
    effects
}

fn ask(
    record: &mut TaskRecord,
    questions: &[Question],
    kept: Vec<(String, RawJson)>,
    effects: &mut Effects,
) -> Result<(), Refused> {
    if record.rounds >= MAX_ROUNDS {
        let reason = format!("`{}` requested input in more than {MAX_ROUNDS} rounds", record.tool);
        return Err(Refused::Limit(reason));
    }
    if questions.len() > MAX_QUESTIONS {
        let reason = format!(
            "`{}` asked {} questions at once; at most {MAX_QUESTIONS} can be open",
            record.tool,
            questions.len()
        );
        return Err(Refused::Limit(reason));
    }
    record.rounds += 1;
    record.kept = kept;
    record.questions.clear();
    for question in questions {
        record.ask(question);
    }
    record.state = TaskState::Asking;
    *effects =
        Effects { claim: Claim::Release, due: Due::Never, is_visible: true, is_changed: true, ..*effects };
    Ok(())
}

fn answer(
    record: &mut TaskRecord,
    answers: Vec<(String, Result<Body, RpcError>)>,
    effects: &mut Effects,
) -> Result<(), Refused> {
    if record.state != TaskState::Asking {
        return Err(Refused::NotAsking);
    }
    for (key, answer) in answers {
        let Some(place) = record.questions.iter().position(|question| question.key == key) else { continue };
        let question = record.questions.remove(place);
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        record.answers.push(TaskAnswer {
            key: Some(key),
            name: question.name,
            fingerprint: question.fingerprint,
            result,
            error,
        });
        effects.is_changed = true;
        effects.is_visible = true;
    }
    if record.questions.is_empty() {
        record.state = TaskState::Working;
        effects.due = Due::In(Duration::ZERO);
        effects.is_changed = true;
        effects.is_visible = true;
    }
    Ok(())
}

fn end(record: &mut TaskRecord, state: TaskState, now: u64, effects: &mut Effects) {
    match &state {
        TaskState::Done(Ending::Error(error)) => {
            record.status = Some(error.message.chars().take(MAX_STATUS_CHARS).collect());
        }
        TaskState::Cancelled => record.status = Some("the task was cancelled".to_owned()),
        TaskState::Done(Ending::Result { .. }) | TaskState::Working | TaskState::Asking => {}
    }
    record.state = state;
    record.questions.clear();
    record.updated_at = record.updated_at.max(now);
    let kept = u64::try_from(KEPT_AFTER_END.as_millis()).unwrap_or(u64::MAX);
    let age = now.saturating_sub(record.created_at);
    record.ttl_ms = record.ttl_ms.max(age.saturating_add(kept));
    *effects = Effects {
        claim: Claim::Release,
        due: Due::Never,
        expires_in: Some(Duration::from_millis(record.ttl_ms.saturating_sub(age))),
        is_visible: true,
        is_changed: true,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        replay::Replay,
        service::ClientView,
        task::{TaskCaller, TaskJob, view_2025, view_2026},
    };
    use bowline_types::{InputRequest, Revision, TaskStatus};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const CREATED: u64 = 1_785_231_000_000;

    fn task() -> TaskRecord {
        let client =
            ClientView::new(Revision::V2026_07_28, Some("ada".into()), RawJson::empty_object(), None);
        let caller = TaskCaller::of(&client, None);
        let input = Body::Inline(RawJson::empty_object());
        let mut record = TaskRecord::new("t1".into(), "index".into(), caller, input, &Replay::default());
        (record.created_at, record.updated_at, record.ttl_ms) = (CREATED, CREATED, 60_000);
        record
    }

    fn questions(names: &[&str]) -> Event {
        let questions = names.iter().map(|name| Question::new(*name, InputRequest::ListRoots)).collect();
        Event::Ask { questions, kept: Vec::new() }
    }

    fn answer(keys: &[&str]) -> Event {
        let answer = |key: &&str| ((*key).to_owned(), Ok(Body::Inline(RawJson::empty_object())));
        Event::Answer(keys.iter().map(answer).collect())
    }

    fn done(is_error: bool) -> Event {
        Event::Finish(Ending::Result { is_error, body: Body::Inline(RawJson::empty_object()) })
    }

    #[test]
    fn a_task_asks_and_goes_on_when_all_answers_are_there() {
        // proves: TASK-33, TASKX-31, TASKX-32
        let mut record = task();
        let asked = transition(&mut record, questions(&["a", "b"]), CREATED + 1).unwrap();
        assert_eq!((asked.claim, asked.due), (Claim::Release, Due::Never));
        assert_eq!(view_2026::status(&record), TaskStatus::InputRequired);
        let ignored = transition(&mut record, answer(&["q9"]), CREATED + 2).unwrap();
        assert!(!ignored.is_changed);
        transition(&mut record, answer(&["q1"]), CREATED + 3).unwrap();
        assert_eq!(view_2026::status(&record), TaskStatus::InputRequired);
        // Once more: it counts once.
        assert!(!transition(&mut record, answer(&["q1"]), CREATED + 4).unwrap().is_changed);
        let last = transition(&mut record, answer(&["q2"]), CREATED + 5).unwrap();
        assert_eq!(last.due, Due::In(Duration::ZERO));
        assert_eq!(view_2026::status(&record), TaskStatus::Working);
        let replay = record.replay(|_| None);
        assert_eq!(replay.answers().count(), 2);
        assert_eq!(replay.rounds(), 1);
        // The keys of a later round are new ones, although the handler asks the same.
        transition(&mut record, questions(&["a"]), CREATED + 6).unwrap();
        assert_eq!(record.questions[0].key, "q3");
    }

    #[test]
    fn a_task_that_has_not_ended_in_time_fails_and_stays_readable() {
        // proves: TASK-23, TASKX-22
        let mut record = task();
        let effects = transition(&mut record, Event::Refresh, CREATED + 60_000).unwrap();
        assert_eq!(effects.expires_in, Some(KEPT_AFTER_END));
        assert_eq!(view_2025::status(&record), TaskStatus::Failed);
        assert_eq!(record.ttl_ms, 60_000 + 900_000);
        assert_eq!(record.status.as_deref(), Some("the task expired: `index@1` did not end within 60000 ms"));
        assert_eq!(transition(&mut record, done(false), CREATED + 60_001), Err(Refused::Ended));
    }

    #[test]
    fn the_two_generations_differ_in_what_failed_means() {
        // proves: TASK-49, TASK-50, TASKX-41
        let mut record = task();
        transition(&mut record, done(true), CREATED + 1).unwrap();
        assert_eq!(view_2025::status(&record), TaskStatus::Failed);
        assert!(view_2025::task(&record, CREATED).status_message.is_some());
        assert_eq!(view_2026::status(&record), TaskStatus::Completed);
    }

    #[test]
    fn limits_are_refused_with_a_reason() {
        let mut record = task();
        let many: Vec<String> = (0..=MAX_QUESTIONS).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            transition(&mut record, questions(&many), CREATED).unwrap_err().to_string(),
            "`index` asked 33 questions at once; at most 32 can be open"
        );
        record.rounds = MAX_ROUNDS;
        assert_eq!(
            transition(&mut record, questions(&["a"]), CREATED).unwrap_err().to_string(),
            "`index` requested input in more than 100 rounds"
        );
        assert_eq!(record.state, TaskState::Working);
    }

    #[test]
    fn a_record_survives_the_store_and_keeps_what_it_does_not_know() {
        let mut record = task();
        transition(&mut record, questions(&["a"]), CREATED).unwrap();
        let mut value: serde_json::Value = serde_json::from_slice(&record.encode()).unwrap();
        value["newer"] = serde_json::json!({ "x": [1] });
        let read = TaskRecord::decode(value.to_string().as_bytes()).unwrap();
        assert_eq!(read.questions, record.questions);
        let again: serde_json::Value = serde_json::from_slice(&read.encode()).unwrap();
        assert_eq!(again, value);
        value["format"] = serde_json::json!(2);
        let refused = TaskRecord::decode(value.to_string().as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "the task was written in format 2; this version reads up to 1");
    }

    #[test]
    fn a_cancelled_job_stays_due_until_the_other_system_knows() {
        let mut record = task();
        record.job = Some(TaskJob::default());
        let pause = Event::Sleep { time: Duration::from_secs(30), kept: Vec::new() };
        transition(&mut record, pause, CREATED + 7).unwrap();
        assert_eq!(record.job.as_ref().unwrap().polled_at, CREATED + 7);
        let early = Event::CancelOutsideLater(Duration::from_secs(5));
        assert_eq!(transition(&mut record, early.clone(), CREATED + 8), Err(Refused::NotCancelled));

        let cancelled = transition(&mut record, Event::Cancel, CREATED + 9).unwrap();
        assert_eq!((cancelled.claim, cancelled.due), (Claim::Release, Due::In(Duration::ZERO)));
        let seen = view_2026::task(&record, None, CREATED + 9);
        let later = transition(&mut record, early, CREATED + 10).unwrap();
        assert_eq!((later.due, later.is_visible), (Due::In(Duration::from_secs(5)), false));
        assert_eq!(transition(&mut record, done(false), CREATED + 11), Err(Refused::Ended));
        assert!(TaskRecord::decode(&record.encode()).unwrap().cancels_outside());
        let known = transition(&mut record, Event::CancelledOutside, CREATED + 12).unwrap();
        assert_eq!((known.claim, known.due, known.is_visible), (Claim::Release, Due::Never, false));
        assert_eq!(transition(&mut record, Event::CancelledOutside, CREATED + 13), Err(Refused::Ended));
        let unchanged = view_2026::task(&record, None, CREATED + 9);
        assert_eq!(serde_json::to_value(unchanged).unwrap(), serde_json::to_value(seen).unwrap());
    }

    #[test]
    fn a_job_that_was_cancelled_outside_is_a_cancelled_task() {
        let mut record = task();
        record.job = Some(TaskJob::default());
        let effects = transition(&mut record, Event::CancelledOutside, CREATED + 1).unwrap();
        assert_eq!((effects.due, effects.is_visible), (Due::Never, true));
        assert_eq!(view_2025::status(&record), TaskStatus::Cancelled);
        assert!(!record.cancels_outside());
    }

    #[derive(Clone, Debug)]
    enum Move {
        Ask(usize),
        Answer(u32),
        Report(String),
        Sleep,
        Release,
        Done(bool),
        Fail,
        Cancel,
        Refresh,
    }

    fn moves() -> impl Strategy<Value = Vec<(Move, u64)>> {
        let one = prop_oneof![
            (0..4_usize).prop_map(Move::Ask),
            (0..8_u32).prop_map(Move::Answer),
            (0..8_u32).prop_map(Move::Answer),
            "[a-z]{0,8}".prop_map(Move::Report),
            Just(Move::Sleep),
            Just(Move::Release),
            any::<bool>().prop_map(Move::Done),
            Just(Move::Fail),
            Just(Move::Cancel),
            Just(Move::Refresh),
        ];
        proptest::collection::vec((one, 0..9_000_u64), 0..40)
    }

    proptest! {
        #[test]
        fn every_history_follows_the_rules(moves in moves()) {
            // proves: TASK-18, TASK-19, TASK-20, TASK-46, TASKX-28, TASKX-29
            let mut record = task();
            let mut now = CREATED;
            let mut keys = BTreeSet::new();
            prop_assert_eq!(view_2025::status(&record), TaskStatus::Working);
            for (step, time) in moves {
                now += time;
                let before = record.clone();
                let event = match step {
                    Move::Ask(count) => questions(&["a", "b", "c", "d"][..count]),
                    Move::Answer(number) => answer(&[&format!("q{number}")]),
                    Move::Report(status) => Event::Report { status: Some(status), progress: None },
                    Move::Sleep => Event::Sleep { time: Duration::from_secs(1), kept: Vec::new() },
                    Move::Release => Event::Release,
                    Move::Done(is_error) => done(is_error),
                    Move::Fail => Event::Finish(Ending::Error(RpcError::internal("no"))),
                    Move::Cancel => Event::Cancel,
                    Move::Refresh => Event::Refresh,
                };
                let asks = matches!(event, Event::Ask { .. });
                let outcome = transition(&mut record, event, now);
                if before.is_terminal() {
                    prop_assert_eq!(&before, &record);
                }
                if outcome.is_err() && !record.is_terminal() {
                    prop_assert_eq!(&before, &record);
                }
                if let Ok(effects) = outcome {
                    prop_assert_eq!(effects.is_changed, before != record || effects.claim == Claim::Release);
                    if asks && !record.is_terminal() {
                        for question in &record.questions {
                            prop_assert!(keys.insert(question.key.clone()), "key {} is used twice", question.key);
                        }
                    }
                    if record.is_terminal() && !before.is_terminal() {
                        prop_assert_eq!((effects.claim, effects.due), (Claim::Release, Due::Never));
                    }
                }
                prop_assert!(record.updated_at >= before.updated_at);
                prop_assert!(record.ttl_ms >= before.ttl_ms);
                prop_assert_eq!(record.created_at, CREATED);
                let decoded = TaskRecord::decode(&record.encode()).expect("what is written can be read");
                prop_assert_eq!(&decoded, &record);
            }
        }
    }
}
