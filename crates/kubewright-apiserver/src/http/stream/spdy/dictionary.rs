//! The text that both sides of SPDY know before they compress their first headers (SPDY Protocol, draft 3.1, 2.6.10.1).

use std::sync::LazyLock;

/// The names of headers and their frequent values, each behind its length in the dictionary.
const WORDS: &str = "\
    options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-\
    ranges|age|allow|authorization|cache-control|connection|content-base|content-encoding|content-la\
    nguage|content-length|content-location|content-md5|content-range|content-type|date|etag|expect|e\
    xpires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|last-modi\
    fied|location|max-forwards|pragma|proxy-authenticate|proxy-authorization|range|referer|retry-aft\
    er|server|te|trailer|transfer-encoding|upgrade|user-agent|vary|via|warning|www-authenticate|meth\
    od|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|keep-alive|origin";

/// More values, one after the other.
const VALUES: &str = "\
    100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 No\
    n-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 \
    Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb \
    Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,\
    text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/ja\
    vascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// The dictionary.
pub(super) static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let words = WORDS.split('|').flat_map(|word| {
        let length = word.len() as u32;
        length.to_be_bytes().into_iter().chain(word.bytes())
    });
    words.chain(VALUES.bytes()).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    /// Length and checksum are those of the draft; zlib names a dictionary by the latter.
    #[test]
    fn it_is_the_dictionary_of_the_draft() {
        let mut deflate = flate2::Compress::new(flate2::Compression::default(), true);
        let checksum = deflate.set_dictionary(&DICTIONARY).expect("a dictionary");
        assert_eq!((DICTIONARY.len(), checksum), (1423, 0xe3c6a7c2));
    }
}
