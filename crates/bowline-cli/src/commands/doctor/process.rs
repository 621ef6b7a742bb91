//! Checks the server process: output, startup time and exit.

use super::{
    facts::Facts,
    finding::{Finding, Level},
};
use bowline_text::visible;
use std::time::Duration;

const SLOW: Duration = Duration::from_secs(2);
const VERY_SLOW: Duration = Duration::from_secs(10);
const LINGERING: Duration = Duration::from_secs(1);
const CHATTY: usize = 100;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let found = [noise(facts), start(facts), stderr(facts), end(facts)];
    found.into_iter().flatten().collect()
}

fn noise(facts: &Facts) -> Option<Finding> {
    let count = facts.noise.count;
    if count == 0 {
        return None;
    }
    let what = format!("non-protocol text on standard output: {count} {}", lines(count));
    let advice = "print everything else to standard error: many clients disconnect on such a line";
    Finding::new(Level::Error, "stdout-noise", what, advice)
        .at_all(facts.noise.last.iter().map(|line| format!("`{}`", visible(line))).collect())
}

fn lines(count: u64) -> &'static str {
    if count == 1 { "line" } else { "lines" }
}

fn start(facts: &Facts) -> Option<Finding> {
    let first = facts.first_frame.filter(|first| *first > SLOW)?;
    let level = if first > VERY_SLOW { Level::Warning } else { Level::Hint };
    let what = format!("first response after {:.1} s", first.as_secs_f64());
    let advice = "respond to the handshake first and do slow work later: clients wait 10 to 60 seconds";
    Some(Finding::new(level, "slow-start", what, advice))
}

fn stderr(facts: &Facts) -> Option<Finding> {
    let lines = facts.process.as_ref()?.stderr_lines;
    if lines <= CHATTY {
        return None;
    }
    let what = format!("at least {lines} lines on standard error during a short session");
    Some(Finding::new(Level::Hint, "stderr-volume", what, "log less by default: clients store these lines"))
}

fn end(facts: &Facts) -> Option<Finding> {
    let process = facts.process.as_ref()?;
    let Some((after, exit)) = process.ended else {
        let advice =
            "exit when standard input is closed: otherwise clients kill the process or leave it running";
        return Some(Finding::new(
            Level::Warning,
            "no-end",
            "does not exit when standard input is closed",
            advice,
        ));
    };
    if !exit.is_success() {
        let what = format!("{exit} when standard input is closed");
        return Some(Finding::new(
            Level::Hint,
            "bad-end",
            what,
            "exit with code 0 when standard input is closed",
        ));
    }
    if after > LINGERING {
        let what = format!("exits {:.1} s after standard input is closed", after.as_secs_f64());
        return Some(Finding::new(
            Level::Hint,
            "slow-end",
            what,
            "exit immediately: some clients kill the process after two seconds",
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{
        super::{facts::Process, finding::summary_lines},
        *,
    };
    use bowline_client::Exit;
    use expect_test::{Expect, expect};

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check_one(change: impl FnOnce(&mut Facts), expected: Expect) {
        let mut facts = Facts::without_findings();
        facts.process = Some(Process { stderr_lines: 0, ended: Some((Duration::ZERO, Exit::Code(0))) });
        change(&mut facts);
        expected.assert_eq(&summary_lines(&check(&facts)));
    }

    #[test]
    fn a_correct_program_has_no_findings() {
        check_one(|_| {}, expect![""]);
    }

    #[test]
    fn process_problems_are_reported() {
        let with_process = |process| move |facts: &mut Facts| facts.process = Some(process);
        check_one(
            |facts| {
                facts.noise.count = 1;
                facts.noise.last.push_back("Listening\u{1b}[0m".into());
            },
            expect![
                "error stdout-noise: non-protocol text on standard output: 1 line [`Listening<U+001B>[0m`]"
            ],
        );
        check_one(
            |facts| facts.first_frame = Some(Duration::from_millis(2500)),
            expect!["hint slow-start: first response after 2.5 s []"],
        );
        check_one(
            with_process(Process { stderr_lines: 101, ended: None }),
            expect![[r"
                hint stderr-volume: at least 101 lines on standard error during a short session []
                warning no-end: does not exit when standard input is closed []"]],
        );
        check_one(
            with_process(Process { stderr_lines: 0, ended: Some((Duration::ZERO, Exit::Code(3))) }),
            expect!["hint bad-end: exited with code 3 when standard input is closed []"],
        );
        check_one(
            with_process(Process {
                stderr_lines: 0,
                ended: Some((Duration::from_millis(1500), Exit::Code(0))),
            }),
            expect!["hint slow-end: exits 1.5 s after standard input is closed []"],
        );
    }
}
