//! A copy of the log of records, taken beside the process that writes it: for backups.
//!
//! The stores are copied at a moment between [`LogCopy::begin`] and [`LogCopy::end`]. The copy has each record that waited
//! when it began and each that was written until it ended. What became of them meanwhile is left out: a store that was
//! copied before it had a record's effect gets that record again, and one that has it already knows it again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::frame::{self, Entry};
use super::recovery::segment_files;

/// The segments of a log, held open: one that its owner deletes meanwhile can still be read.
#[derive(Debug)]
pub struct LogCopy {
    dir: PathBuf,
    segments: BTreeMap<u32, Segment>,
}

#[derive(Debug)]
struct Segment {
    file: File,
    /// Its length when the copy began; 0 for a segment that was not there yet.
    begun: u64,
    /// Its length when the copy ended.
    ended: u64,
}

impl LogCopy {
    /// Begins a copy of the log in a directory. Blocks, and takes no lock.
    ///
    /// # Errors
    /// The directory or a segment cannot be read.
    pub fn begin(dir: &Path) -> io::Result<Self> {
        let mut segments = BTreeMap::new();
        for (number, path) in segment_files(dir)? {
            // One that is gone by now holds nothing that a queue waits for.
            let Some(file) = present(File::open(path))? else {
                continue;
            };
            let begun = file.metadata()?.len();
            let segment = Segment {
                file,
                begun,
                ended: begun,
            };
            segments.insert(number, segment);
        }
        Ok(Self {
            dir: dir.to_owned(),
            segments,
        })
    }

    /// Ends the moment. False: a segment came and went since it began, so that the copy has to begin again.
    ///
    /// # Errors
    /// The directory or a segment cannot be read.
    pub fn end(&mut self) -> io::Result<bool> {
        let last = self.segments.keys().next_back().copied().unwrap_or(0);
        let found = segment_files(&self.dir)?;
        let head = found.keys().next_back().copied().unwrap_or(last);
        for number in last + 1..=head {
            let path = found.get(&number).map(File::open);
            let Some(file) = path.map(present).transpose()?.flatten() else {
                return Ok(false);
            };
            let segment = Segment {
                file,
                begun: 0,
                ended: 0,
            };
            self.segments.insert(number, segment);
        }
        for segment in self.segments.values_mut() {
            segment.ended = segment.file.metadata()?.len();
        }
        Ok(true)
    }

    /// Writes the copy into an empty directory and onto the disk; returns the files.
    ///
    /// # Errors
    /// A segment cannot be read, or the file system refuses to write.
    pub fn write(self, to: &Path) -> io::Result<Vec<PathBuf>> {
        fs::create_dir_all(to)?;
        let mut files = Vec::new();
        for (number, segment) in &self.segments {
            let path = to.join(format!("{number:010}.log"));
            let mut file = File::create(&path)?;
            file.write_all(&segment.kept()?)?;
            file.sync_all()?;
            files.push(path);
        }
        Ok(files)
    }
}

impl Segment {
    /// Its entries, without those of the moment that say that something is over.
    fn kept(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.ended).map_err(io::Error::other)?;
        let mut data = vec![0; length];
        self.file.read_exact_at(&mut data, 0)?;
        let mut kept = Vec::with_capacity(length);
        let mut at = 0;
        // What follows the last whole entry was still being written, or was cut off by a crash.
        while let Some((entry, length)) = frame::read(&data[at..]) {
            let over = matches!(
                entry,
                Entry::Done(..) | Entry::QueueGone(_) | Entry::TopicGone(_)
            );
            if !over || (at as u64) < self.begun {
                kept.extend_from_slice(&data[at..at + length]);
            }
            at += length;
        }
        Ok(kept)
    }
}

fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tg_schemas::{Class, Subscription, Topic};
    use tg_storage::Durability;

    use super::*;
    use crate::embedded::EmbeddedBus;
    use crate::{Bus, Envelope, PublishMode, Target};

    async fn publish(bus: &EmbeddedBus, topic: &Topic, text: &str) {
        let envelope = Envelope {
            body: Bytes::copy_from_slice(text.as_bytes()),
            ..Envelope::default()
        };
        bus.publish(
            &Target::Topic(topic.clone()),
            envelope,
            PublishMode::Confirmed,
        )
        .await
        .unwrap();
    }

    async fn take(bus: &EmbeddedBus, queue: &Subscription) -> Option<String> {
        let delivery = bus.take(queue).await.unwrap()?;
        let text = String::from_utf8(delivery.envelope.body.to_vec()).unwrap();
        delivery.ack();
        Some(text)
    }

    #[tokio::test]
    async fn what_waited_and_what_came_is_copied_and_what_was_handled_meanwhile_waits_again() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, to) = (folder.path().join("bus"), folder.path().join("copy"));
        let bus = EmbeddedBus::open(&dir, Durability::Process).unwrap();
        let topic = Topic::system(Class::Flow, "copied");
        let queue = Subscription::service(topic.clone(), "reader");
        bus.declare(std::slice::from_ref(&topic), std::slice::from_ref(&queue))
            .await
            .unwrap();
        for text in ["over", "waits", "handled meanwhile"] {
            publish(&bus, &topic, text).await;
        }
        assert_eq!(take(&bus, &queue).await.unwrap(), "over");
        let mut copy = LogCopy::begin(&dir).unwrap();
        // The head is not deleted, so larger records make new segments that push older ones out.
        let large = "x".repeat(6 << 20);
        for _ in 0..4 {
            publish(&bus, &topic, &large).await;
        }
        assert_eq!(take(&bus, &queue).await.unwrap(), "waits");
        assert_eq!(take(&bus, &queue).await.unwrap(), "handled meanwhile");
        assert!(copy.end().unwrap());
        publish(&bus, &topic, "too late").await;
        let files = copy.write(&to).unwrap();
        assert!(files.len() > 1, "{files:?}");

        let copied = EmbeddedBus::open(&to, Durability::Process).unwrap();
        let mut all = Vec::new();
        while let Some(text) = take(&copied, &queue).await {
            all.push(text);
        }
        let large = large.as_str();
        assert_eq!(
            all,
            ["waits", "handled meanwhile", large, large, large, large]
        );
        // The log goes on where the copy ends.
        publish(&copied, &topic, "new").await;
        assert_eq!(take(&copied, &queue).await.unwrap(), "new");
    }

    #[test]
    fn a_segment_that_came_and_went_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let segment = |number: u32| dir.path().join(format!("{number:010}.log"));
        fs::write(segment(3), "").unwrap();
        let mut copy = LogCopy::begin(dir.path()).unwrap();
        fs::remove_file(segment(3)).unwrap();
        fs::write(segment(4), "").unwrap();
        assert!(copy.end().unwrap());
        fs::write(segment(6), "").unwrap();
        assert!(!copy.end().unwrap());
    }
}
