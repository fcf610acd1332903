//! Reading a file of either format, record by record.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::event::{Event, Unreadable};
use crate::format::{FRAME, FRAME_V1, Frame, MAGIC, salvage, unframe};

/// Bytes read ahead at a time.
const AHEAD: usize = 64 * 1024;

/// What comes next in a file.
#[derive(Debug)]
pub enum Entry {
    /// A record: its body, and what that is.
    Record(Vec<u8>, Result<Event, Unreadable>),
    /// Every record was whole.
    End,
    /// The last record is incomplete: it was never answered, because the write of it was cut off.
    Torn,
    /// From here on the bytes are not what was written.
    Damaged {
        /// What is left of the file.
        rest: Vec<u8>,
        /// Records that can be found in it all the same.
        salvaged: Vec<Vec<u8>>,
    },
}

/// A file that is being read. Blocking.
#[derive(Debug)]
pub struct FileReader {
    file: BufReader<File>,
    length: u64,
    position: u64,
    version: u8,
    /// Where each record read so far begins.
    starts: Vec<u64>,
}

impl FileReader {
    /// Opens a file and finds out its format.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<FileReader> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut reader = FileReader {
            file: BufReader::with_capacity(AHEAD, file),
            length,
            position: 0,
            version: 1,
            starts: Vec::new(),
        };
        let head = reader.take(MAGIC.len() as u64)?;
        if !head.is_empty() && MAGIC.starts_with(&head) {
            reader.version = 2;
            // A header that is not whole is found again, as a torn or damaged first record.
            let at = reader.position;
            if !matches!(reader.record()?, Entry::Record(..)) {
                reader.seek(at)?;
            }
        } else {
            reader.seek(0)?;
        }
        Ok(reader)
    }

    /// Format of the file, 1 or 2.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Records read so far.
    pub fn position(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Reads on.
    ///
    /// # Errors
    /// Those of the system.
    pub fn next_entry(&mut self) -> io::Result<Entry> {
        let start = self.position;
        let entry = self.record()?;
        if matches!(entry, Entry::Record(..)) {
            self.starts.push(start);
        }
        Ok(entry)
    }

    /// Passes over the records from here on by their lengths, without looking into them, and says how many there are: what
    /// a start can afford whose spool is large.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn skip_to_end(mut self) -> io::Result<u64> {
        let prefix = if self.version == 1 { FRAME_V1 } else { FRAME };
        let mut records = 0;
        while self.length - self.position > prefix as u64 {
            let mut head = [0; FRAME];
            let head = &mut head[..prefix];
            self.file.read_exact(head)?;
            self.position += prefix as u64;
            let size = head.first_chunk::<4>().map_or(0, |length| u64::from(u32::from_le_bytes(*length)));
            if size == 0 || size > self.length - self.position {
                break;
            }
            self.seek(self.position + size)?;
            records += 1;
        }
        Ok(records)
    }

    /// Reads a record again that was read before.
    ///
    /// # Errors
    /// Those of the system; also when it is not what it was.
    pub fn again(&mut self, index: u64) -> io::Result<(Vec<u8>, Result<Event, Unreadable>)> {
        let start = usize::try_from(index).ok().and_then(|index| self.starts.get(index)).copied();
        let start = start.ok_or_else(|| io::Error::other("a record was asked for that was not read"))?;
        let back = self.position;
        self.seek(start)?;
        let entry = self.record();
        self.seek(back)?;
        match entry? {
            Entry::Record(body, event) => Ok((body, event)),
            _ => Err(io::Error::other("a record changed after it was read")),
        }
    }

    fn record(&mut self) -> io::Result<Entry> {
        let start = self.position;
        if start >= self.length {
            return Ok(Entry::End);
        }
        let prefix = if self.version == 1 { FRAME_V1 } else { FRAME };
        let mut bytes = self.take(prefix as u64)?;
        let size = bytes.first_chunk::<4>().map(|length| u64::from(u32::from_le_bytes(*length)));
        let whole =
            size.filter(|size| *size > 0 && bytes.len() == prefix && *size <= self.length - self.position);
        let Some(size) = whole else { return self.ending(start) };
        bytes.extend(self.take(size)?);
        if bytes.len() < prefix + usize::try_from(size).unwrap_or(usize::MAX) {
            return self.ending(start);
        }
        let body = match (self.version, unframe(&bytes)) {
            (1, _) => bytes.split_off(FRAME_V1),
            (_, Frame::Whole(body, _)) => body.to_vec(),
            _ => return self.ending(start),
        };
        let event = Event::decode(&body);
        Ok(Entry::Record(body, event))
    }

    /// What the rest of the file is, whose first record is not whole.
    fn ending(&mut self, start: u64) -> io::Result<Entry> {
        self.seek(start)?;
        let rest = self.take(self.length - start)?;
        if rest.iter().all(|byte| *byte == 0) {
            // Space that the file system had set aside before the power went.
            return Ok(Entry::Torn);
        }
        if self.version == 1 {
            // Without sums nobody can tell a torn record from a damaged length.
            return Ok(Entry::Damaged { rest, salvaged: Vec::new() });
        }
        let salvaged = salvage(&rest);
        if salvaged.is_empty() && unframe(&rest) == Frame::Short {
            return Ok(Entry::Torn);
        }
        Ok(Entry::Damaged { rest, salvaged })
    }

    /// Up to so many bytes, fewer at the end of the file.
    fn take(&mut self, count: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.by_ref().take(count).read_to_end(&mut bytes)?;
        self.position += bytes.len() as u64;
        Ok(bytes)
    }

    fn seek(&mut self, position: u64) -> io::Result<()> {
        let by = i64::try_from(position).unwrap_or(i64::MAX) - i64::try_from(self.position).unwrap_or(0);
        // Keeps what was read ahead, where it can.
        self.file.seek_relative(by).or_else(|_| self.file.seek(SeekFrom::Start(position)).map(|_| ()))?;
        self.position = position;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Header, frame};
    use proptest::prelude::*;
    use queen_types::{Timestamp, Uuid};

    fn body(n: usize) -> Vec<u8> {
        format!(r#"{{"queue":"q","partition":"p","transactionId":"t{n}","encrypted":false,"payload":{n}}}"#)
            .into_bytes()
    }

    fn file(bodies: usize, version: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        if version == 2 {
            bytes = Header::new("s", Uuid::nil(), Timestamp::EPOCH).bytes();
        }
        for n in 0..bodies {
            if version == 2 {
                frame(&mut bytes, &body(n));
            } else {
                bytes.extend_from_slice(&(body(n).len() as u32).to_le_bytes());
                bytes.extend_from_slice(&body(n));
            }
        }
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Entry) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, bytes).unwrap();
        let mut reader = FileReader::open(&path).unwrap();
        let mut bodies = Vec::new();
        loop {
            match reader.next_entry().unwrap() {
                Entry::Record(body, event) => {
                    event.unwrap();
                    assert_eq!(reader.again(bodies.len() as u64).unwrap().0, body);
                    bodies.push(body);
                }
                end => return (bodies, end),
            }
        }
    }

    #[test]
    fn both_formats_are_read() {
        for version in [1, 2] {
            let (bodies, end) = read(&file(3, version));
            assert_eq!(bodies, [body(0), body(1), body(2)], "format {version}");
            assert!(matches!(end, Entry::End));
        }
        assert!(matches!(read(b""), (bodies, Entry::End) if bodies.is_empty()));
    }

    #[test]
    fn a_cut_at_any_byte_loses_the_torn_record_alone() {
        let whole = file(3, 2);
        let ends: Vec<usize> = (0..=3).map(|n| file(n, 2).len()).collect();
        for cut in 0..whole.len() {
            let (bodies, end) = read(&whole[..cut]);
            let complete = ends.iter().filter(|end| **end <= cut).count().saturating_sub(1);
            assert_eq!(bodies.len(), complete, "cut at {cut}");
            match end {
                Entry::End => assert!(ends.contains(&cut) || cut <= MAGIC.len(), "cut at {cut}"),
                Entry::Torn => {}
                other => panic!("cut at {cut}: {other:?}"),
            }
        }
        let mut zeros = whole.clone();
        zeros.extend([0; 5000]);
        assert!(matches!(read(&zeros), (bodies, Entry::Torn) if bodies.len() == 3));
    }

    proptest! {
        #[test]
        fn damage_keeps_the_prefix_and_finds_what_is_behind(at in 0usize..1_000_000, flip in 1u8..=255) {
            let clean = file(6, 2);
            let start = file(0, 2).len();
            let at = start + at % (clean.len() - start);
            let mut bytes = clean.clone();
            bytes[at] ^= flip;
            let hit = (0..6).filter(|n| file(*n, 2).len() <= at).max().unwrap_or(0);
            let (bodies, end) = read(&bytes);
            prop_assert_eq!(bodies.len(), hit);
            // The last record with a longer length looks torn: nothing stands behind it.
            match end {
                Entry::Torn => prop_assert_eq!(hit, 5),
                Entry::Damaged { salvaged, .. } => {
                    let behind: Vec<_> = (hit + 1..6).map(body).collect();
                    prop_assert_eq!(salvaged, behind);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
