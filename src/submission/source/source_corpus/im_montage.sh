W=$1; T=$2; BLUR=$3
CONVERT=${CONVERT:-/usr/bin/convert}
args=()
for i in $(seq $T); do
  args+=( \( -size ${W}x${W} plasma:fractal -blur 0x$BLUR \) )
done
$CONVERT -limit memory 4GiB -limit map 4GiB "${args[@]}" -append -resize 25% out.png
ls -l out.png
