import configparser
import numpy as np

c = configparser.ConfigParser()
c.read("run.ini")
g = c["grid"]
nlat, nlon, years = g.getint("nlat"), g.getint("nlon"), g.getint("years")
nt = years * 12
rng = np.random.default_rng(0)
lat = np.linspace(-89, 89, nlat)
tas = 288 - 40 * np.sin(np.deg2rad(lat)) ** 2 + np.zeros((nt, nlat, nlon)).transpose(0, 2, 1)
tas = tas.transpose(0, 2, 1) + rng.normal(size=(nt, nlat, nlon)) * c.getfloat("noise", "sigma")
tas += 0.002 * np.arange(nt)[:, None, None]
month = np.arange(nt) % 12
clim = np.stack([tas[month == m].mean(0) for m in range(12)])
anom = tas - clim[month]
if c.getboolean("options", "detrend"):
    t = np.arange(nt) - nt / 2
    slope = np.tensordot(t, anom, 1) / (t ** 2).sum()
    anom = anom - slope * t[:, None, None]
std = np.ma.masked_invalid(anom).std(0)
print("shape", anom.shape, "mean std %.3f" % std.mean())
w = np.cos(np.deg2rad(lat))
np.savetxt("global_mean.txt", np.average(anom.mean(2), axis=1, weights=w))
