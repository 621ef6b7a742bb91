//! The rules.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, Event, Rule, Status, Violation};

/// Two leases: the time after which an abandoned task must have found another owner.
const SETTLE: u64 = 30_000;

/// What is known about a task.
#[derive(Default)]
struct Task<'a> {
    created: Option<(u64, &'a str, u64)>,
    /// When an end was first seen, and how it ended.
    ended: Option<(u64, Option<&'a str>)>,
    /// The last status, and when it was asked for.
    last: Option<(u64, Status)>,
    /// Attempts: start, end, claim, node, lapses.
    attempts: Vec<Attempt<'a>>,
}

struct Attempt<'a> {
    start: u64,
    end: u64,
    claim: &'a str,
    node: &'a str,
    lapses: u32,
}

pub(super) fn all(entries: &[Entry]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut broken = |rule, what: String| found.push(Violation { rule, what });
    let mut tasks: BTreeMap<&str, Task<'_>> = BTreeMap::new();
    let mut ran: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut values: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut states: BTreeMap<&str, &str> = BTreeMap::new();
    let mut streams: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    let mut open: BTreeMap<&str, u64> = BTreeMap::new();
    let mut quiet = None;

    for Entry { at, event } in entries {
        match event {
            Event::Created { task, principal, ttl } => {
                tasks.entry(task).or_default().created = Some((*at, principal, *ttl));
            }
            Event::Read { task, principal, asked, status, outcome } => {
                let known = tasks.entry(task).or_default();
                if let Some((_, owner, _)) = known.created
                    && owner != principal
                {
                    broken(Rule::H9, format!("task {task} of {owner} was read by {principal} at {at}"));
                }
                // A read that was asked for before the end was seen may be older than the end.
                if let Some((seen, how)) = known.ended
                    && seen <= *asked
                    && (*status != Status::Ended || how != outcome.as_deref())
                {
                    broken(
                        Rule::H2,
                        format!(
                            "task {task} ended at {seen} as {how:?} and was {status:?} as {outcome:?} at {at}"
                        ),
                    );
                }
                if *status == Status::Ended && known.ended.is_none() {
                    known.ended = Some((*at, outcome.as_deref()));
                }
                if known.last.is_none_or(|(last, _)| last <= *asked) {
                    known.last = Some((*asked, *status));
                }
            }
            Event::Unknown { task, principal, asked } => {
                if let Some((created, owner, ttl)) = tasks.entry(task).or_default().created
                    && owner == principal
                    && created <= *asked
                    && *at < created + ttl
                {
                    broken(
                        Rule::H1,
                        format!("task {task} was created at {created} for {ttl} ms and unknown at {at}"),
                    );
                }
            }
            Event::AttemptStarted { task, node, claim, lapses } => {
                let attempt = Attempt { start: *at, end: u64::MAX, claim, node, lapses: *lapses };
                tasks.entry(task).or_default().attempts.push(attempt);
            }
            Event::AttemptEnded { task, claim } => {
                let attempts = tasks.entry(task).or_default().attempts.iter_mut();
                for attempt in attempts.filter(|attempt| attempt.claim == claim && attempt.end == u64::MAX) {
                    attempt.end = *at;
                }
            }
            Event::NodeDied { node } => {
                let attempts = tasks.values_mut().flat_map(|task| &mut task.attempts);
                for attempt in attempts.filter(|attempt| attempt.node == node && attempt.end == u64::MAX) {
                    attempt.end = *at;
                }
            }
            Event::StepRan { task, step } => _ = ran.insert((task, step)),
            Event::StepUsed { task, step, value } => {
                if !ran.contains(&(task.as_str(), step.as_str())) {
                    broken(Rule::H3, format!("step {step} of task {task} has a value and never ran"));
                }
                let first = values.entry((task, step)).or_insert(value);
                if *first != value {
                    broken(
                        Rule::H3,
                        format!("step {step} of task {task} has the values {first} and {value}"),
                    );
                }
            }
            Event::StateUsed { state, call } => {
                let first = states.entry(state).or_insert(call);
                if *first != call {
                    broken(Rule::H5, format!("state {state} was used by the calls {first} and {call}"));
                }
            }
            Event::StreamEvent { stream, number } => {
                let last = streams.entry(stream).or_insert(Some(0));
                match last {
                    Some(last) if *number == *last + 1 => *last = *number,
                    Some(last) => {
                        broken(Rule::H6, format!("stream {stream} went on after {last} with {number}"));
                        *last = *number;
                    }
                    None => {
                        broken(Rule::H6, format!("stream {stream} continued with {number} after its error"));
                    }
                }
            }
            Event::StreamBroken { stream } => _ = streams.insert(stream, None),
            Event::Sent { request } => _ = open.insert(request, *at),
            Event::Settled { request } => _ = open.remove(request.as_str()),
            Event::Quiet => quiet = Some(*at),
        }
    }

    for (request, at) in open {
        broken(Rule::H7, format!("request {request}, sent at {at}, was never settled"));
    }
    for (name, task) in &tasks {
        for (index, one) in task.attempts.iter().enumerate() {
            for two in &task.attempts[index + 1..] {
                if one.start < two.end && two.start < one.end && one.lapses >= two.lapses {
                    broken(
                        Rule::H4,
                        format!(
                            "task {name}: the attempts {} and {} overlapped at {} without a lapse",
                            one.claim, two.claim, two.start
                        ),
                    );
                }
            }
        }
        if let (Some(quiet), Some((asked, Status::Working))) = (quiet, task.last)
            && asked >= quiet + SETTLE
            && task.attempts.iter().all(|attempt| attempt.end <= asked)
        {
            broken(Rule::H8, format!("task {name} was still at work at {asked}, and nobody worked on it"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{Event, History, Rule, Rules, Status};

    fn text(text: &str) -> String {
        text.to_owned()
    }

    fn created() -> Event {
        Event::Created { task: text("t"), principal: text("ann"), ttl: 100_000 }
    }

    fn read(asked: u64, status: Status, outcome: Option<&str>) -> Event {
        Event::Read { task: text("t"), principal: text("ann"), asked, status, outcome: outcome.map(text) }
    }

    fn started(claim: &str, lapses: u32) -> Event {
        Event::AttemptStarted { task: text("t"), node: text("n"), claim: text(claim), lapses }
    }

    fn used(value: &str) -> Event {
        Event::StepUsed { task: text("t"), step: text("s"), value: text(value) }
    }

    /// Every second event happens at an even time.
    fn check(events: &[Event], expected: &[Rule]) {
        let history = History::new();
        for (index, event) in events.iter().enumerate() {
            history.record(index as u64 * 2, event.clone());
        }
        let found: Vec<Rule> = history.check(&Rules::all()).iter().map(|violation| violation.rule).collect();
        assert_eq!(found, expected, "{events:?}");
    }

    #[test]
    fn a_run_without_faults_is_accepted() {
        let ran = Event::StepRan { task: text("t"), step: text("s") };
        let ended = Event::AttemptEnded { task: text("t"), claim: text("1") };
        check(
            &[
                created(),
                started("1", 0),
                ran,
                used("v"),
                ended,
                read(8, Status::Ended, Some("v")),
                Event::Quiet,
            ],
            &[],
        );
    }

    #[test]
    fn every_rule_finds_its_violation() {
        check(
            &[created(), Event::Unknown { task: text("t"), principal: text("ann"), asked: 1 }],
            &[Rule::H1],
        );
        check(&[read(0, Status::Ended, Some("a")), read(1, Status::Working, None)], &[Rule::H2]);
        check(&[read(0, Status::Ended, Some("a")), read(1, Status::Ended, Some("b"))], &[Rule::H2]);
        check(&[used("v")], &[Rule::H3]);
        let ran = || Event::StepRan { task: text("t"), step: text("s") };
        check(&[ran(), used("v"), ran(), used("w")], &[Rule::H3]);
        check(&[started("1", 0), started("2", 0)], &[Rule::H4]);
        let state = |call| Event::StateUsed { state: text("x"), call: text(call) };
        check(&[state("1"), state("1"), state("2")], &[Rule::H5]);
        let event = |number| Event::StreamEvent { stream: text("x"), number };
        check(&[event(1), event(3)], &[Rule::H6]);
        check(&[event(1), event(1)], &[Rule::H6]);
        check(&[event(1), Event::StreamBroken { stream: text("x") }, event(2)], &[Rule::H6]);
        check(&[Event::Sent { request: text("1") }], &[Rule::H7]);
        check(&[created(), Event::Quiet, read(40_000, Status::Working, None)], &[Rule::H8]);
        let foreign = Event::Read {
            task: text("t"),
            principal: text("bob"),
            asked: 1,
            status: Status::Working,
            outcome: None,
        };
        check(&[created(), foreign], &[Rule::H9]);
    }

    #[test]
    fn what_is_allowed_is_not_reported() {
        // A foreign task is unknown.
        check(&[created(), Event::Unknown { task: text("t"), principal: text("bob"), asked: 1 }], &[]);
        // The second attempt follows a lapse, or the death of the first node.
        check(&[started("1", 0), started("2", 1)], &[]);
        check(&[started("1", 0), Event::NodeDied { node: text("n") }, started("2", 0)], &[]);
        // The read was under way when the task ended.
        check(
            &[
                read(0, Status::Working, None),
                read(2, Status::Ended, Some("a")),
                read(1, Status::Working, None),
            ],
            &[],
        );
    }

    #[test]
    fn a_history_travels_as_lines() {
        let history = History::new();
        history.record(7, created());
        history.record(9, read(8, Status::InputRequired, None));
        let lines: Vec<String> = history.entries().iter().map(super::Entry::to_line).collect();
        let copy = History::new();
        copy.read_lines(&lines.join("\n")).unwrap();
        assert_eq!(copy.entries(), history.entries());
        let error = copy.read_lines("\n{}").unwrap_err();
        assert!(error.to_string().starts_with("line 2 of the history is not an event"), "{error}");
    }
}
