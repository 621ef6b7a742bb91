//! What was acknowledged is there after `kill -9`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bowline_sqlite::Sqlite;
use bowline_store::{Group, Key, Put, Records};

const FILE: &str = "BOWLINE_SQLITE_TEST_FILE";
const HOUR: Duration = Duration::from_secs(3_600);

/// Not a test of its own: the process that the test below kills. It prints the key of each acknowledged record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_until_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let store = Arc::new(Sqlite::open(Path::new(&file)).unwrap());
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for number in 0..u32::MAX {
                let key = Key::new(format!("{}-{writer}-{number}", std::process::id())).unwrap();
                let put = Put::create(key.clone(), vec![7; 300], HOUR).group(Group::new("all").unwrap());
                store.put(put).await.unwrap();
                println!("acknowledged {key}");
            }
        });
    }
    writers.join_all().await;
}

#[tokio::test]
async fn acknowledged_records_survive_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut acknowledged = Vec::new();
    for round in 1..=5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::write_until_killed", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut collect = |line: String| {
            let key = line.split("acknowledged ").nth(1);
            acknowledged.extend(key.map(|key| Key::new(key).unwrap()));
        };
        // The child is killed in the middle of its work.
        for line in lines.by_ref().take(100 * round) {
            collect(line.unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        // The last line may be cut off.
        let whole = rest.len().saturating_sub(1);
        rest.into_iter().take(whole).for_each(&mut collect);
    }
    assert!(acknowledged.len() > 1_000, "{}", acknowledged.len());
    let store = Sqlite::open(&path).unwrap();
    for keys in acknowledged.chunks(500) {
        let records = store.get(keys).await.unwrap();
        let lost: Vec<&Key> =
            keys.iter().zip(&records).filter(|(_, record)| record.is_none()).map(|(key, _)| key).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
    }
}
