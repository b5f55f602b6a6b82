"""What is wrong with a folder of shapes: files, twins, odd shapes and labels."""
