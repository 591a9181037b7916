# Reads what to watch, line by line, until the owner says `release` or dies. The first argument is a folder or nothing.
watched=
while read -r verb group signal; do
    case $verb in
    watch) watched="$watched $group:$signal" ;;
    forget)
        kept=
        for one in $watched; do
            [ "${one%%:*}" = "$group" ] || kept="$kept $one"
        done
        watched=$kept
        ;;
    release) exit 0 ;;
    esac
done
for one in $watched; do
    kill -s "${one#*:}" -- "-${one%%:*}" 2>/dev/null
done
looks=0
while [ "$looks" -lt 50 ]; do
    alive=
    for one in $watched; do
        kill -s 0 -- "-${one%%:*}" 2>/dev/null && alive=yes
    done
    [ -n "$alive" ] || break
    sleep 0.1
    looks=$((looks + 1))
done
for one in $watched; do
    kill -s KILL -- "-${one%%:*}" 2>/dev/null
done
# What ends just now may still write, so the folder may need more than one try.
tries=0
while [ -n "$1" ] && [ -e "$1" ] && [ "$tries" -lt 50 ]; do
    rm -rf -- "$1" 2>/dev/null || sleep 0.1
    tries=$((tries + 1))
done
