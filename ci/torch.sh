#!/bin/sh
# Unpacks Debian's PyTorch (python3-torch 1.13, about 120 MB to fetch) into ${CLB_TORCH_DIR:-.torch}, where its installation would take
# three times as long, and prints its interpreter; prints /usr/bin/python3 where that has it:  torch=$(ci/torch.sh)
set -eu
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then echo /usr/bin/python3 && exit; fi
mkdir -p "${CLB_TORCH_DIR:-.torch}"
folder=$(cd "${CLB_TORCH_DIR:-.torch}" && pwd)
if [ ! -e "$folder/complete" ]; then
  rm -rf "$folder/all" "$folder/packages" && mkdir "$folder/packages"
  # Not what only tests, command lines and maps of these packages need.
  names=$(apt-get install --simulate --no-install-recommends python3-torch | sed -n 's/^Inst \([^ ]*\) .*/\1/p' |
    grep -v -E '^(libtorch-test|gdal-.*|proj-data|.*-common|python3-(hypothesis|sympy|mpmath|psutil|requests|urllib3|chardet|dateutil|attr))$')
  # shellcheck disable=SC2086
  (cd "$folder/packages" && apt-get download -qq -o APT::Sandbox::User=root $names >&2)
  for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder/all"; done
  rm -r "$folder/packages"
  libraries=$folder/all/usr/lib/x86_64-linux-gnu
  cat >"$folder/python" <<END
#!/bin/sh
export LD_LIBRARY_PATH="$libraries:$folder/all/usr/lib:\${LD_LIBRARY_PATH:-}"
export PYTHONPATH="$folder/all/usr/lib/python3/dist-packages:\${PYTHONPATH:-}"
exec /usr/bin/python3 "\$@"
END
  chmod +x "$folder/python"
  "$folder/python" -c 'import torch' >&2
  touch "$folder/complete"
fi
echo "$folder/python"
