module imageedit.dev/localcluster/pause

go 1.24.0
