//! Counts the bytes of a connection and finds the next fault.

use super::plan::{Action, Direction, Fault};

/// The number of bytes of a request that are kept to search for text.
const MAX_KEPT: usize = 1024 * 1024;

/// The state of one connection.
#[derive(Debug, Default)]
pub(super) struct Meter {
    number: u64,
    /// Bytes since the connection began.
    all: Counts,
    /// Bytes since the start of the client's last request.
    turn: Counts,
    /// The client's bytes in this turn.
    sent: Vec<u8>,
    answered: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    request: Count,
    reply: Count,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    passed: u64,
    /// The first byte that was not yet checked for a fault.
    due: u64,
}

impl Counts {
    fn of(&mut self, direction: Direction) -> &mut Count {
        match direction {
            Direction::Request => &mut self.request,
            Direction::Reply => &mut self.reply,
        }
    }
}

impl Meter {
    pub(super) fn new(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    /// Records received bytes. A turn begins with the first bytes of the client, and with its first bytes after a
    /// reply.
    pub(super) fn receive(&mut self, direction: Direction, bytes: &[u8]) {
        match direction {
            Direction::Reply => self.answered = true,
            Direction::Request => {
                if std::mem::take(&mut self.answered) {
                    self.turn = Counts::default();
                    self.sent.clear();
                }
                let room = MAX_KEPT.saturating_sub(self.sent.len());
                self.sent.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            }
        }
    }

    /// Records that bytes were passed on.
    pub(super) fn pass(&mut self, direction: Direction, bytes: usize) {
        for counts in [&mut self.all, &mut self.turn] {
            let count = counts.of(direction);
            count.passed += bytes as u64;
            count.due = count.due.max(count.passed + 1);
        }
    }

    /// Returns the first fault within the next `length` bytes, and the number of bytes before it. A fault that happens
    /// once is removed from `faults`.
    pub(super) fn next_fault(
        &mut self,
        direction: Direction,
        length: usize,
        faults: &mut Vec<Fault>,
    ) -> Option<(usize, Action)> {
        let mut next: Option<(usize, usize)> = None;
        for (index, fault) in faults.iter().enumerate() {
            if fault.direction != direction || fault.connection.is_some_and(|number| number != self.number) {
                continue;
            }
            let count = match &fault.text {
                Some(text) if !contains(&self.sent, text) => continue,
                Some(_) => self.turn.of(direction),
                None => self.all.of(direction),
            };
            if fault.at < count.due {
                continue;
            }
            let ahead = usize::try_from(fault.at - count.passed).unwrap_or(usize::MAX);
            if ahead <= length && next.is_none_or(|(_, first)| ahead < first) {
                next = Some((index, ahead));
            }
        }
        let (index, ahead) = next?;
        for counts in [&mut self.all, &mut self.turn] {
            let count = counts.of(direction);
            count.due = count.passed + ahead as u64 + 1;
        }
        let always = faults.get(index).is_some_and(|fault| fault.always);
        let action = if always { faults.get(index)?.action.clone() } else { faults.remove(index).action };
        Some((ahead, action))
    }
}

fn contains(sent: &[u8], text: &[u8]) -> bool {
    text.is_empty() || sent.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks at which positions of the direction faults happen when these pieces pass.
    fn check(faults: &[Fault], pieces: &[(Direction, &str)], expected: &[u64]) {
        let (mut meter, mut faults) = (Meter::new(0), faults.to_vec());
        let mut triggered = Vec::new();
        for (direction, piece) in pieces {
            meter.receive(*direction, piece.as_bytes());
            let mut left = piece.len();
            while let Some((ahead, _)) = meter.next_fault(*direction, left, &mut faults) {
                meter.pass(*direction, ahead);
                left -= ahead;
                triggered.push(meter.all.of(*direction).passed);
            }
            meter.pass(*direction, left);
        }
        assert_eq!(triggered, expected);
    }

    use Direction::{Reply, Request};

    #[test]
    fn a_fault_happens_once_at_its_byte() {
        let pieces = [(Request, "abc"), (Request, "def")];
        for at in 0..=6 {
            check(&[Fault::request(at)], &pieces, &[at]);
        }
        check(&[Fault::request(7)], &pieces, &[]);
        check(&[Fault::reply(0)], &pieces, &[]);
        check(&[Fault::request(1).on_connection(1)], &pieces, &[]);
        check(&[Fault::request(4), Fault::request(1), Fault::request(3).always()], &pieces, &[1, 3, 4]);
    }

    #[test]
    fn a_text_is_counted_from_its_request() {
        let pieces = [(Request, "one"), (Reply, "ONE"), (Request, "two"), (Reply, "TWO"), (Request, "two")];
        check(&[Fault::request(0).containing("two")], &pieces, &[3]);
        check(&[Fault::request(3).containing("two")], &pieces, &[6]);
        check(&[Fault::request(2).containing("two").always()], &pieces, &[5, 8]);
        check(&[Fault::reply(0).containing("two")], &pieces, &[3]);
        check(&[Fault::reply(3).containing("two")], &pieces, &[6]);
        check(&[Fault::reply(4).containing("two")], &pieces, &[]);
        check(&[Fault::reply(0).containing("ONE")], &pieces, &[]);
    }

    #[test]
    fn a_text_may_come_in_pieces() {
        let pieces = [(Request, "t"), (Request, "w"), (Request, "o!")];
        check(&[Fault::request(4).containing("two")], &pieces, &[4]);
        // Bytes that passed before the text was complete cannot be held back.
        check(&[Fault::request(1).containing("two")], &pieces, &[]);
    }
}
