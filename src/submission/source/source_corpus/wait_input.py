import os, sys, time

deadline = int(os.environ.get("WAIT_MAX", "3600"))
buf = bytearray(int(sys.argv[1]) * 2 ** 20)      # receive buffer
path = "incoming/feed.bin"
t0 = time.time()
while not os.path.exists(path):
    if time.time() - t0 > deadline:
        print("no data after", deadline, "s, nothing to do")
        sys.exit(0)
    time.sleep(0.5)
with open(path, "rb") as f:
    n = f.readinto(buf)
print("got", n, "bytes")
